// Products of bf16 slices of the engine cpu by a matrix unit (bf16_panels.hpp): fused ones, from FP32
// operands to C, and products of slices in memory.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "arith/range.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "engines/cpu/bf16_panels.hpp"
#include "engines/cpu/products.hpp"
#include "engines/tile_loop.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core {

namespace {

// 64: products of split-n with eight slices a side, the most of any scheme with bf16 slices.
constexpr std::size_t max_terms = 64;

struct Terms {
  std::array<Bf16Term, max_terms> terms;
  int count = 0;

  void add(const Bf16Term& term) {
    if (count == static_cast<int>(max_terms))
      fail(Status::internal, "accumulator group has more than {} terms", max_terms);
    terms[static_cast<std::size_t>(count++)] = term;
  }
};

KINTSUGI_VECTORIZED void add_floats(const float* addends, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += addends[i];
}

// ---------------------------------------------------------------- fused products
//
// Loops, from outside: blocks of right vectors; blocks of left vectors; the panels of both are split, each
// once; then threads take tiles of the block. A tile goes through k in runs, the schedule's k-blocks: all
// terms of a run and a pair of panels are multiplied on one set of accumulators, and their sum is added to
// the tile's sums, which stay in L2. A right panel of 64 inner indices has 12 KiB of three slices in L1.

// Longest k-block: the panels of a tile in all slices stay in L2.
constexpr std::int64_t most_run = 512;

// Panels of a block of one operand that a cache may hold, and memory of the panels of a block of both.
constexpr std::size_t most_cached_bytes = std::size_t{32} << 20;
constexpr std::int64_t preferred_panel_bytes = std::int64_t{512} << 20;

// Inner indices that one thread splits at once.
constexpr std::int64_t split_length = 1024;

// Edge of a tile of C: its sums take 1 MiB. (Every CPU with such a unit has at least 2 MiB of L2.)
constexpr std::int64_t most_tile = 512;

// The runs of a schedule: k-blocks of segments.
struct Runs {
  std::int64_t k;
  std::int64_t segment;
  std::int64_t block;

  Runs(const Schedule& schedule, std::int64_t inner)
      : k(inner), segment(schedule.segment_length(inner)),
        block(std::min(schedule.block_length(inner), segment)) {}

  std::int64_t per_segment() const { return divide_up(segment, block); }
  std::int64_t segments() const { return divide_up(k, segment); }
  std::int64_t count() const {
    return (segments() - 1) * per_segment() + divide_up(k - (segments() - 1) * segment, block);
  }
  Interval run(std::int64_t index) const {
    const std::int64_t first_of_segment = index / per_segment() * segment;
    const std::int64_t first = first_of_segment + index % per_segment() * block;
    return {first, std::min(block, std::min(k, first_of_segment + segment) - first)};
  }
};

struct Sizes {
  int slices;
  std::int64_t runs;
  std::int64_t segments;
  std::int64_t slice_bytes;  // of a panel
  std::int64_t left_block;   // vectors, multiples of Bf16Panel::vectors
  std::int64_t right_block;
  std::int64_t left_tile;
  std::int64_t right_tile;

  // Panels are ordered by run, then by vectors; a panel has its slices one after the other.
  std::int64_t panel_bytes() const { return slices * slice_bytes; }
  std::int64_t run_stride(std::int64_t block) const { return block / Bf16Panel::vectors * panel_bytes(); }
  std::size_t panels_bytes(std::int64_t block) const {
    return static_cast<std::size_t>(runs * run_stride(block));
  }
  std::int64_t tile_sums() const { return left_tile * right_tile; }
  // Sums of all segments, and of one.
  std::size_t worker_bytes() const {
    return static_cast<std::size_t>((segments > 1 ? 2 : 1) * tile_sums()) * sizeof(float);
  }
  std::size_t scratch_bytes(int threads) const {
    return aligned_size(panels_bytes(left_block)) + aligned_size(panels_bytes(right_block)) +
           static_cast<std::size_t>(std::max(threads, 1)) * aligned_size(worker_bytes());
  }
};

// `left` and `right`: numbers of vectors.
Sizes sizes_of(const FusedProblem& problem, std::int64_t left, std::int64_t right, int threads) {
  const Runs runs(problem.schedule, problem.k);
  Sizes sizes{};
  sizes.slices = problem.split_a.slices;
  sizes.runs = runs.count();
  sizes.segments = runs.segments();
  sizes.slice_bytes = divide_up(runs.block, Bf16Panel::step) * Bf16Panel::step_bytes;
  left = round_up(left, Bf16Panel::vectors);
  right = round_up(right, Bf16Panel::vectors);
  sizes.left_tile = std::min(left, most_tile);
  sizes.right_block = std::min<std::int64_t>(right, threads > 1 ? 4096 : 2048);
  const std::int64_t vector_bytes = sizes.runs * sizes.panel_bytes() / Bf16Panel::vectors;
  const std::int64_t left_limit = preferred_panel_bytes / vector_bytes - sizes.right_block;
  sizes.left_block =
      std::min(left, std::max(left_limit / Bf16Panel::vectors * Bf16Panel::vectors, 4 * sizes.left_tile));
  sizes.right_tile = std::min(sizes.right_block, most_tile);
  // Every thread must get some tiles.
  const auto tiles = [&] {
    return divide_up(sizes.left_block, sizes.left_tile) * divide_up(sizes.right_block, sizes.right_tile);
  };
  const auto divide = [&](std::int64_t least_tiles, std::int64_t least_edge) {
    while (tiles() < least_tiles && std::max(sizes.left_tile, sizes.right_tile) > least_edge) {
      std::int64_t& longer = sizes.right_tile >= sizes.left_tile ? sizes.right_tile : sizes.left_tile;
      longer = round_up(divide_up(longer, 2), Bf16Panel::vectors);
    }
  };
  if (threads > 1) {
    divide(8 * threads, 256);  // cores may differ in speed by a factor of three
    divide(threads, 64);
  }
  return sizes;
}

// Returns the larger of two sizes: only C tells which operand is the left one.
std::size_t scratch_bytes(const FusedProblem& problem, int threads) {
  return std::max(sizes_of(problem, problem.m, problem.n, threads).scratch_bytes(threads),
                  sizes_of(problem, problem.n, problem.m, threads).scratch_bytes(threads));
}

bool is_zero(const VectorRange& range) { return (range.flags & VectorRange::all_zero) != 0; }

// Least exponent of the scaled elements of all vectors that are not zero.
int least_exponent(std::span<const VectorRange> ranges) {
  int least = 0;
  for (const VectorRange& range : ranges) {
    if (!is_zero(range)) least = std::min(least, range.smallest + range.scale);
  }
  return least;
}

constexpr int smallest_normal = -126;
constexpr int fraction_bits = 23;

// True if rescaling can be left out: each term (s, t) is rescaled as often after its products as the
// residuals of its slices were multiplied before, s + t times.
bool rescaling_undoes_residuals(const FusedProblem& problem) {
  const std::span<const Term> terms = problem.schedule.terms;
  int rescalings = 0;
  for (std::size_t t = terms.size(); t-- > 0;) {
    if (terms[t].a + terms[t].b != rescalings) return false;
    rescalings += terms[t].rescales ? 1 : 0;
  }
  return problem.schedule.rescale_exponent == -problem.split_a.residual_exponent;
}

// True if no number is subnormal: neither a slice with unscaled residuals nor a sum of their products. With
// exponents from e on, every slice is a multiple of 2^(e - 23), and every sum one of the product of two such
// numbers, however it is rounded. Accumulators then have the same bits, but for their exponents, whether
// residuals are multiplied and accumulators rescaled or not.
bool are_sums_normal(std::span<const VectorRange> rows, std::span<const VectorRange> columns) {
  const int a = least_exponent(rows) - fraction_bits;
  const int b = least_exponent(columns) - fraction_bits;
  return a >= smallest_normal && b >= smallest_normal && a + b >= smallest_normal;
}

// True if FP32 holds every scaled element, and so the residuals.
bool are_scaled_exactly(std::span<const VectorRange> ranges) {
  return least_exponent(ranges) >= smallest_normal;
}

class Product {
 public:
  Product(const FusedProduct<float>& product, const Bf16Kernels& kernels)
      : product_(product), problem_(product.problem), kernels_(kernels), runs_(problem_.schedule, problem_.k),
        swaps_(product.c.row_stride == 1), left_(swaps_ ? product.b : product.a),
        right_(swaps_ ? product.a : product.b), left_ranges_(swaps_ ? product.columns : product.rows),
        right_ranges_(swaps_ ? product.rows : product.columns),
        c_(swaps_ ? product.c.transposed() : product.c),
        sizes_(sizes_of(problem_, swaps_ ? problem_.n : problem_.m, swaps_ ? problem_.m : problem_.n,
                        product.threads)),
        rescales_(!rescaling_undoes_residuals(problem_) || !are_sums_normal(left_ranges_, right_ranges_)),
        left_panels_(product.scratch),
        right_panels_(left_panels_ + aligned_size(sizes_.panels_bytes(sizes_.left_block))),
        workers_(right_panels_ + aligned_size(sizes_.panels_bytes(sizes_.right_block))) {
    for (const Term& term : problem_.schedule.terms)
      terms_.add({.left = swaps_ ? term.b : term.a,
                  .right = swaps_ ? term.a : term.b,
                  .rescales = rescales_ && term.rescales});
  }

  void run() {
    const std::int64_t tiles =
        divide_up(sizes_.right_block, sizes_.right_tile) * divide_up(sizes_.left_block, sizes_.left_tile);
    const std::int64_t panels =
        std::max(sizes_.left_block, sizes_.right_block) / Bf16Panel::vectors * split_tasks();
    const int threads = workers_for(std::max(tiles, panels), product_.threads);
#pragma omp parallel num_threads(threads)
    {
      const FloatingEnvironment environment;
      float* const sums = reinterpret_cast<float*>(workers_ + static_cast<std::size_t>(omp_get_thread_num()) *
                                                                  aligned_size(sizes_.worker_bytes()));
      for (std::int64_t right = 0; right < right_.rows; right += sizes_.right_block) {
        const std::int64_t right_count = std::min(sizes_.right_block, right_.rows - right);
        split_block(right_, right_ranges_, {right, right_count}, right_panels_, sizes_.right_block, false);
        for (std::int64_t left = 0; left < left_.rows; left += sizes_.left_block) {
          const std::int64_t left_count = std::min(sizes_.left_block, left_.rows - left);
          if (right == 0 || left_.rows > sizes_.left_block)
            split_block(left_, left_ranges_, {left, left_count}, left_panels_, sizes_.left_block, true);
          multiply_block({left, left_count}, {right, right_count}, sums);
        }
      }
    }
  }

 private:
  std::int64_t runs_at_once() const { return std::max<std::int64_t>(split_length / runs_.block, 1); }
  std::int64_t split_tasks() const { return divide_up(sizes_.runs, runs_at_once()); }

  // Splits the vectors of a block into panels. All threads call it, and leave it together.
  void split_block(const MatrixView<const float>& operand, std::span<const VectorRange> ranges,
                   Interval vectors, std::byte* panels, std::int64_t block, bool is_left) const {
    const std::int64_t panel_count = divide_up(vectors.count, Bf16Panel::vectors);
    // Panels that no cache holds until they are read need not be read before they are written.
    const bool streams = sizes_.panels_bytes(block) > most_cached_bytes;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t task = 0; task < panel_count * split_tasks(); ++task) {
      const std::int64_t panel = task % panel_count;
      const std::int64_t first_run = task / panel_count * runs_at_once();
      const std::int64_t first = vectors.first + panel * Bf16Panel::vectors;
      const Interval of_panel{first, std::min(Bf16Panel::vectors, vectors.end() - first)};
      for (std::int64_t run = first_run; run < std::min(first_run + runs_at_once(), sizes_.runs); ++run) {
        split_panel(operand, ranges, of_panel, runs_.run(run), is_left, streams,
                    panels + run * sizes_.run_stride(block) + panel * sizes_.panel_bytes());
      }
    }
  }

  void split_panel(const MatrixView<const float>& operand, std::span<const VectorRange> ranges,
                   Interval vectors, Interval inner, bool is_left, bool streams, std::byte* panel) const {
    const auto of_panel =
        ranges.subspan(static_cast<std::size_t>(vectors.first), static_cast<std::size_t>(vectors.count));
    if (!are_scaled_exactly(of_panel))
      return split_by_elements(operand, of_panel, vectors, inner, is_left, panel);
    std::array<float, Bf16Panel::vectors> exponents{};
    for (std::size_t v = 0; v < of_panel.size(); ++v) exponents[v] = static_cast<float>(of_panel[v].scale);
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t first = half * Bf16Panel::half;
      const std::int64_t count = std::clamp<std::int64_t>(vectors.count - first, 0, Bf16Panel::half);
      kernels_.split({.elements = &operand(vectors.first + (count > 0 ? first : 0), inner.first),
                      .vector_stride = operand.row_stride,
                      .inner_stride = operand.column_stride,
                      .vectors = count,
                      .length = inner.count,
                      .exponents = exponents.data() + first,
                      .residual_factor = rescales_ ? residual_factor() : 1,
                      .slices = sizes_.slices,
                      .is_left = is_left,
                      .streams = streams,
                      .tile = panel + half * Bf16Panel::tile_bytes,
                      .slice_stride = sizes_.slice_bytes});
    }
  }

  float residual_factor() const {
    return static_cast<float>(power_of_two(problem_.split_a.residual_exponent));
  }

  // Splits a panel whose smallest scaled elements FP32 does not hold.
  void split_by_elements(const MatrixView<const float>& operand, std::span<const VectorRange> ranges,
                         Interval vectors, Interval inner, bool is_left, std::byte* panel) const {
    std::fill_n(panel, sizes_.panel_bytes(), std::byte{0});
    const SplitRule& rule = problem_.split_a;
    for (std::int64_t v = 0; v < vectors.count; ++v) {
      for (std::int64_t p = 0; p < inner.count; ++p) {
        const float x = operand(vectors.first + v, inner.first + p);
        const std::int64_t row = is_left ? v % Bf16Panel::half : p % Bf16Panel::step / 2;
        const std::int64_t number = is_left ? p % Bf16Panel::step : 2 * (v % Bf16Panel::half) + p % 2;
        std::byte* const place = panel + p / Bf16Panel::step * Bf16Panel::step_bytes +
                                 v / Bf16Panel::half * Bf16Panel::tile_bytes + 64 * row + 2 * number;
        split_element(rule, x - x == 0 ? static_cast<double>(x) : 0.0,
                      ranges[static_cast<std::size_t>(v)].scale, [&](int s, std::uint64_t pattern) {
                        const auto stored = static_cast<std::uint16_t>(pattern);
                        std::memcpy(place + s * sizes_.slice_bytes, &stored, sizeof stored);
                      });
      }
    }
  }

  // Multiplies all tiles of a block and recombines them. All threads call it, and leave it together.
  void multiply_block(Interval left, Interval right, float* sums) const {
    const std::int64_t left_tiles = divide_up(left.count, sizes_.left_tile);
    const std::int64_t right_tiles = divide_up(right.count, sizes_.right_tile);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t tile = 0; tile < left_tiles * right_tiles; ++tile) {
      const std::int64_t first_left = tile % left_tiles * sizes_.left_tile;
      const std::int64_t first_right = tile / left_tiles * sizes_.right_tile;
      multiply_tile(left.first, {first_left, std::min(sizes_.left_tile, left.count - first_left)},
                    right.first, {first_right, std::min(sizes_.right_tile, right.count - first_right)}, sums);
    }
  }

  // `left` and `right` are relative to the block. The sums of the first segment become those of all.
  void multiply_tile(std::int64_t left_block, Interval left, std::int64_t right_block, Interval right,
                     float* sums) const {
    const std::int64_t left_panels = divide_up(left.count, Bf16Panel::vectors);
    const std::int64_t right_panels = divide_up(right.count, Bf16Panel::vectors);
    const auto left_at = [&](std::int64_t run) {
      return left_panels_ + run * sizes_.run_stride(sizes_.left_block) +
             left.first / Bf16Panel::vectors * sizes_.panel_bytes();
    };
    const auto right_at = [&](std::int64_t run) {
      return right_panels_ + run * sizes_.run_stride(sizes_.right_block) +
             right.first / Bf16Panel::vectors * sizes_.panel_bytes();
    };
    float* const segment_sums = sums + sizes_.tile_sums();
    for (std::int64_t run = 0; run < sizes_.runs; ++run) {
      const std::int64_t in_segment = run % runs_.per_segment();
      const std::int64_t next = std::min(run + 1, sizes_.runs - 1);
      const bool is_in_first = run < runs_.per_segment();
      kernels_.multiply({.left = left_at(run),
                         .right = right_at(run),
                         .next_left = left_at(next),
                         .next_right = right_at(next),
                         .panel_stride = sizes_.panel_bytes(),
                         .slice_stride = sizes_.slice_bytes,
                         .left_panels = left_panels,
                         .right_panels = right_panels,
                         .steps = static_cast<int>(divide_up(runs_.run(run).count, Bf16Panel::step)),
                         .terms = terms_.terms.data(),
                         .term_count = terms_.count,
                         .rescale = static_cast<float>(power_of_two(problem_.schedule.rescale_exponent)),
                         .continues = false,
                         .is_first = in_segment == 0,
                         .sums = is_in_first ? sums : segment_sums});
      const bool ends_segment = in_segment + 1 == runs_.per_segment() || run + 1 == sizes_.runs;
      if (!is_in_first && ends_segment)
        add_floats(segment_sums, left_panels * right_panels * Bf16Panel::sums, sums);
    }
    for (std::int64_t i = 0; i < left_panels; ++i) {
      for (std::int64_t j = 0; j < right_panels; ++j)
        recombine_pair(sums + (i * right_panels + j) * Bf16Panel::sums,
                       left_block + left.first + i * Bf16Panel::vectors,
                       right_block + right.first + j * Bf16Panel::vectors);
    }
  }

  // Sets the units of the vectors of a panel. Returns a bit for each one that exists and is finite.
  static std::uint32_t set_units(std::span<const VectorRange> ranges, std::int64_t first,
                                 std::array<double, Bf16Panel::vectors>& units) {
    std::uint32_t finite = 0;
    const auto begin = static_cast<std::size_t>(first);
    for (std::size_t v = 0; v < units.size() && begin + v < ranges.size(); ++v) {
      const VectorRange& range = ranges[begin + v];
      if (!range.finite()) continue;
      finite |= 1U << v;
      units[v] = power_of_two(-range.scale);
    }
    return finite;
  }

  void recombine_pair(const float* sums, std::int64_t left, std::int64_t right) const {
    std::array<double, Bf16Panel::vectors> row_units{}, column_units{};
    const std::uint32_t rows = set_units(left_ranges_, left, row_units);
    const std::uint32_t columns = set_units(right_ranges_, right, column_units);
    std::array<std::uint32_t, Bf16Panel::vectors> open{};
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = (rows >> i & 1) != 0 ? columns : 0;
    kernels_.recombine({.sums = sums,
                        .weight = power_of_two(problem_.schedule.sum_exponent(0)),
                        .row_units = row_units.data(),
                        .column_units = column_units.data(),
                        .alpha = static_cast<double>(product_.alpha),
                        .beta = static_cast<double>(product_.beta),
                        .c = &c_(left, right),
                        .row_stride = c_.row_stride,
                        .open = open.data()});
  }

  const FusedProduct<float>& product_;
  const FusedProblem& problem_;
  const Bf16Kernels& kernels_;
  Runs runs_;
  bool swaps_;  // C's columns are contiguous: the left operand is B
  MatrixView<const float> left_;
  MatrixView<const float> right_;
  std::span<const VectorRange> left_ranges_;
  std::span<const VectorRange> right_ranges_;
  MatrixView<float> c_;  // left vectors by right vectors
  Sizes sizes_;
  bool rescales_;  // residuals are multiplied, and accumulators rescaled
  Terms terms_;
  std::byte* left_panels_;
  std::byte* right_panels_;
  std::byte* workers_;
};

bool is_taken(const SplitRule& rule) {
  constexpr int largest_exponent = 40;  // sums of 2^40 products do not overflow
  return rule.format->id == FormatId::bf16 && rule.kind == SplitKind::rounded_residuals &&
         rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even &&
         rule.scale_vectors && rule.top_exponent <= largest_exponent &&
         rule.residual_exponent <= bf16.significand_bits && rule.slices <= Bf16Panel::max_slices;
}

bool takes(const FusedProblem& problem) {
  return bf16_kernels() != nullptr && problem.accumulator == Accumulator::amx_bf16 &&
         problem.type == ElementType::f32 && problem.weighted && takes_bf16(problem);
}

constexpr std::array steps{StepKind::split, StepKind::multiply, StepKind::recombine};

void run(const FusedProduct<float>& product) { multiply_bf16(product, *bf16_kernels()); }

// ---------------------------------------------------------------- slices in memory

// Edge of a tile of C, and inner indices that are packed at once.
constexpr std::int64_t tile_edge = 128;
constexpr std::int64_t packed_length = 512;
constexpr std::int64_t tile_elements = tile_edge * tile_edge;
constexpr std::int64_t packed_slice_bytes = tile_edge * packed_length * 2;
static_assert(tile_edge % Slices::vector_multiple == 0 && tile_edge % Bf16Panel::vectors == 0);

std::size_t sums_bytes() { return tile_elements * sizeof(float); }

// One operand's vectors of a tile, packed slice by slice where a term needs them.
class PackedVectors {
 public:
  PackedVectors(const Slices& slices, std::int64_t first, bool is_left, const Bf16Kernels& kernels,
                std::byte* memory)
      : slices_(slices), first_(first), is_left_(is_left), kernels_(kernels), memory_(memory) {
    std::fill_n(packed_.begin(), slices.count, Interval{-1, 0});
  }

  std::int64_t panels() const {
    return divide_up(std::min(tile_edge, slices_.vectors - first_), Bf16Panel::vectors);
  }

  // Packs a slice over inner indices of at most packed_length, unless it is there already.
  void pack(int slice, Interval inner) {
    Interval& packed = packed_[static_cast<std::size_t>(slice)];
    if (packed == inner) return;
    packed = inner;
    const std::int64_t panel_bytes = bytes_of_panel(inner.count);
    const std::array<float, Bf16Panel::half> unscaled{};
    for (std::int64_t v = 0; v < panels() * Bf16Panel::vectors; v += Bf16Panel::half) {
      const bool exists = first_ + v < slices_.vectors;
      kernels_.split({.elements = slices_.vector<float>(slice, first_ + (exists ? v : 0)) +
                                  inner.first * slices_.element_stride(),
                      .vector_stride = 1,
                      .inner_stride = slices_.element_stride(),
                      .vectors = exists ? Bf16Panel::half : 0,
                      .length = inner.count,
                      .exponents = unscaled.data(),
                      .residual_factor = 1,
                      .slices = 1,
                      .is_left = is_left_,
                      .streams = false,
                      .tile = memory_ + slice * packed_slice_bytes + v / Bf16Panel::vectors * panel_bytes +
                              v / Bf16Panel::half % 2 * Bf16Panel::tile_bytes,
                      .slice_stride = 0});
    }
  }

  static std::int64_t bytes_of_panel(std::int64_t length) {
    return divide_up(length, Bf16Panel::step) * Bf16Panel::step_bytes;
  }
  const std::byte* memory() const { return memory_; }

 private:
  const Slices& slices_;
  std::int64_t first_;
  bool is_left_;
  const Bf16Kernels& kernels_;
  std::byte* memory_;
  std::array<Interval, max_groups> packed_;  // inner indices of every slice
};

// Runs the schedule for one tile of C, as schedule/schedule.hpp defines it. A is the left operand.
class Bf16Tile {
 public:
  Bf16Tile(const Multiplication& task, const Bf16Kernels& kernels, std::int64_t row, std::int64_t column,
           std::byte* scratch)
      : task_(task), schedule_(*task.schedule), kernels_(kernels), row_(row), column_(column),
        rows_(std::min(tile_edge, task.sums.rows - row)),
        columns_(std::min(tile_edge, task.sums.columns - column)), sums_(reinterpret_cast<float*>(scratch)),
        segment_sums_(sums_ + tile_elements), inside_(segment_sums_ + tile_elements),
        a_(task.a, row, true, kernels, scratch + 3 * sums_bytes()),
        b_(task.b, column, false, kernels,
           scratch + 3 * sums_bytes() + schedule_.slices_a * packed_slice_bytes) {}

  void run() {
    const Runs runs(schedule_, task_.a.k);
    for (int sum = 0; sum < schedule_.sums(); ++sum) {
      for (std::int64_t index = 0; index < runs.count(); ++index) {
        const bool is_in_first = index < runs.per_segment();
        const std::int64_t in_segment = index % runs.per_segment();
        add_block(sum, runs.run(index), in_segment == 0, is_in_first ? sums_ : segment_sums_);
        const bool ends_segment = in_segment + 1 == runs.per_segment() || index + 1 == runs.count();
        if (!is_in_first && ends_segment) add_floats(segment_sums_, elements(), sums_);
      }
      store(task_.sums.group<float>(sum));
    }
  }

 private:
  std::int64_t elements() const { return a_.panels() * b_.panels() * Bf16Panel::sums; }

  // Adds the accumulators of a k-block outside. Joint sums begin with 0.
  void add_block(int sum, Interval block, bool is_first, float* outside) {
    if (!schedule_.joint) {
      multiply(sum, block, is_first ? outside : inside_);
      if (!is_first) add_floats(inside_, elements(), outside);
      return;
    }
    if (is_first) std::fill_n(outside, elements(), 0.0F);
    for (int group = 0; group < schedule_.groups; ++group) {
      multiply(group, block, inside_);
      const double weight = power_of_two(schedule_.group_exponents[static_cast<std::size_t>(group)]);
      for (std::int64_t e = 0; e < elements(); ++e)
        inside_[e] = static_cast<float>(weight * static_cast<double>(inside_[e]));
      add_floats(inside_, elements(), outside);
    }
  }

  // Sets `sums` to the group's accumulators over a block.
  void multiply(int group, Interval block, float* sums) {
    Terms terms;
    for (const Term& term : schedule_.terms) {
      if (term.group == group) terms.add({term.a, term.b, term.rescales});
    }
    if (terms.count == 0) std::fill_n(sums, elements(), 0.0F);
    const std::int64_t step = schedule_.k_step == 0 ? block.count : schedule_.k_step;
    bool is_first = true;
    for (std::int64_t p = 0; p < block.count; p += step) {
      const Interval run{block.first + p, std::min(step, block.count - p)};
      for (int first = 0, last = 0; first < terms.count; first = last) {
        // Terms over a long run are multiplied one by one, in parts of the run.
        last = run.count <= packed_length ? terms.count : first + 1;
        const std::span part(terms.terms.data() + first, static_cast<std::size_t>(last - first));
        for (std::int64_t q = 0; q < run.count; q += packed_length, is_first = false) {
          const float rescale = q == 0 ? std::ldexp(1.0F, schedule_.rescale_exponent) : 1;
          add_products(part, {run.first + q, std::min(packed_length, run.count - q)}, rescale, is_first,
                       sums);
        }
      }
    }
  }

  void add_products(std::span<const Bf16Term> terms, Interval inner, float rescale, bool is_first,
                    float* sums) {
    for (const Bf16Term& term : terms) {
      a_.pack(term.left, inner);
      b_.pack(term.right, inner);
    }
    kernels_.multiply({.left = a_.memory(),
                       .right = b_.memory(),
                       .next_left = a_.memory(),
                       .next_right = b_.memory(),
                       .panel_stride = PackedVectors::bytes_of_panel(inner.count),
                       .slice_stride = packed_slice_bytes,
                       .left_panels = a_.panels(),
                       .right_panels = b_.panels(),
                       .steps = static_cast<int>(divide_up(inner.count, Bf16Panel::step)),
                       .terms = terms.data(),
                       .term_count = static_cast<int>(terms.size()),
                       .rescale = rescale,
                       .continues = !is_first,
                       .is_first = is_first,
                       .sums = sums});
  }

  void store(float* target) const {
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        const std::int64_t pair = i / Bf16Panel::vectors * b_.panels() + j / Bf16Panel::vectors;
        const std::int64_t tile = i / Bf16Panel::half % 2 * 2 + j / Bf16Panel::half % 2;
        target[row_ + i + (column_ + j) * task_.sums.rows] =
            sums_[pair * Bf16Panel::sums + tile * 256 + i % Bf16Panel::half * Bf16Panel::half +
                  j % Bf16Panel::half];
      }
    }
  }

  const Multiplication& task_;
  const Schedule& schedule_;
  const Bf16Kernels& kernels_;
  std::int64_t row_;
  std::int64_t column_;
  std::int64_t rows_;
  std::int64_t columns_;
  float* sums_;
  float* segment_sums_;
  float* inside_;
  PackedVectors a_;
  PackedVectors b_;
};

}  // namespace

bool takes_bf16(const FusedProblem& problem) {
  const Schedule& schedule = problem.schedule;
  return problem.k > 0 && is_taken(problem.split_a) && problem.split_a == problem.split_b &&
         schedule.groups == 1 && !schedule.joint && !schedule.integer_sums && schedule.k_step == 0 &&
         schedule.terms.size() <= max_terms && Runs(schedule, problem.k).block <= most_run;
}

void multiply_bf16(const FusedProduct<float>& product, const Bf16Kernels& kernels) {
  Product(product, kernels).run();
}

std::size_t bf16_worker_bytes(const Schedule& schedule) {
  return aligned_size(3 * sums_bytes() +
                      static_cast<std::size_t>((schedule.slices_a + schedule.slices_b) * packed_slice_bytes));
}

void multiply_bf16(const Multiplication& task, const Bf16Kernels& kernels) {
  for_each_tile({task.sums.rows, task.sums.columns, tile_edge, tile_edge}, task.threads, task.scratch,
                bf16_worker_bytes(*task.schedule),
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  Bf16Tile(task, kernels, row, column, scratch).run();
                });
}

const FusedKernel bf16_products{
    .name = "bf16_products", .steps = steps, .takes = takes, .scratch_bytes = scratch_bytes, .run_f32 = run};

}  // namespace kintsugi::core
