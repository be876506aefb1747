// Fused products of the engine cpu: from FP32 and FP64 operands to C by int8 slices, which are made panel by
// panel and multiplied, reduced and recombined before they leave the caches (byte_panels.hpp).
//
// Loops, from outside: blocks of right vectors; blocks of left vectors; the panels of both are split, each
// once; then threads take tiles of the block. A tile goes through all slices, all k and all pairs of panels
// (PanelKernels::multiply), and is recombined into C. Sizes follow from the caches as in H2SGEMM (Eqs. 8 to
// 10): a right panel in two thirds of L1, the tile's left panels of one slice in three eighths of L2.
#include <omp.h>

#if defined(__linux__)
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "arith/residue/fraction_sums.hpp"
#include "arith/residue/residue.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/threads.hpp"
#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/products.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/recombine.hpp"

namespace kintsugi::core {

namespace {

constexpr int max_residues = 4 * PanelFractions::max_words;
constexpr int max_digits = 4;
static_assert(max_digits * max_digits <= max_residues);  // terms
using Fractions = FractionTable<max_residues>;

// ---------------------------------------------------------------- constants of residues

int symmetric(std::int64_t x, int modulus) {
  const auto rest = static_cast<int>((x % modulus + modulus) % modulus);
  return rest > modulus / 2 ? rest - modulus : rest;
}

// Weights congruent to factor 256^i, one a byte, and the least possible weighted sum of bytes.
struct Weights {
  std::array<std::uint32_t, 3> packed{};
  std::int64_t least = 0;
};

// `last_byte`: largest value of the last byte.
Weights weights_of(int factor, int bytes, int last_byte, int modulus) {
  Weights weights;
  std::int64_t power = factor;
  for (int i = 0; i < bytes; ++i, power = power * 256 % modulus) {
    const int weight = symmetric(power, modulus);
    weights.packed[i / 4] |= std::uint32_t{static_cast<std::uint8_t>(weight)} << 8 * (i % 4);
    if (weight < 0) weights.least += std::int64_t{i + 1 < bytes ? 255 : last_byte} * weight;
  }
  return weights;
}

// Returns the least number that is at least `least` and congruent to x.
std::uint32_t bias_of(std::int64_t least, std::int64_t x, int modulus) {
  const std::int64_t rest = ((x - least) % modulus + modulus) % modulus;
  return static_cast<std::uint32_t>(least + rest);
}

// Bytes of sums and of operands' integers, and the bits that the integers may have.
constexpr int sum_bytes = 4;
constexpr int narrow_integer_bytes = 8;
constexpr int wide_integer_bytes = 12;
constexpr int most_narrow_bits = 62;
constexpr int most_integer_bits = 94;

// Constants for integers of `bytes` bytes to which 2^(8 bytes - 1) was added.
ByteReduction reduction_of(int modulus, int bytes) {
  ByteReduction reduction{};
  reduction.modulus = static_cast<std::uint32_t>(modulus);
  if (modulus == 256) return reduction;
  std::int64_t offset = 128;
  for (int i = 1; i < bytes; ++i) offset = offset * 256 % modulus;
  const Weights first = weights_of(1, bytes, 255, modulus);
  reduction.low = first.packed[0];
  reduction.high = first.packed[1];
  reduction.top = first.packed[2];
  reduction.first_bias = bias_of(-first.least, -offset, modulus);
  // With the weights of the first max_residues moduli, first sums of twelve bytes are at most 205,525. So the
  // last of their bytes is at most 3, with which last sums are at most 43,066.
  const Weights last = weights_of(-65536 % modulus, 3, 3, modulus);
  reduction.last = last.packed[0];
  reduction.last_bias = bias_of(-last.least, 0, modulus);
  std::uint32_t inverse = 1;  // Newton's iteration doubles the number of right bits
  for (int i = 0; i < 4; ++i) inverse *= 2 - reduction.modulus * inverse;
  reduction.inverse = inverse & 0xffffU;
  return reduction;
}

PanelFractions panel_fractions(const Fractions& table) {
  PanelFractions result{};
  result.residues = table.count;
  for (int d = 0; d < fraction_digits; ++d) {
    result.first[d] = first_digit_sum(d);
    for (int w = 0; w < PanelFractions::max_words; ++w) {
      result.digit[d][w] = table.digits[d][w];
      for (int byte = 0; byte < 4; ++byte) result.first[d] += 128 * (table.digits[d][w] >> 8 * byte & 0xffU);
    }
  }
  return result;
}

struct ResidueTables {
  struct Recombination {
    FractionFactor factor;
    PanelFractions digits;
  };
  std::array<ByteReduction, max_residues> split;  // of operands' integers
  std::array<ByteReduction, max_residues> wide_split;
  std::array<ByteReduction, max_residues> sums;
  std::array<Recombination, max_residues + 1> fractions;  // by the number of residues
};

ResidueTables make_residue_tables() {
  ResidueTables tables{};
  for (std::size_t t = 0; t < max_residues; ++t) {
    tables.split[t] = reduction_of(moduli[t], narrow_integer_bytes);
    tables.wide_split[t] = reduction_of(moduli[t], wide_integer_bytes);
    tables.sums[t] = reduction_of(moduli[t], sum_bytes);
  }
  for (int count = 2; count <= max_residues; ++count) {
    const Fractions table = fraction_table<max_residues>(count);
    tables.fractions[static_cast<std::size_t>(count)] = {table.factor, panel_fractions(table)};
  }
  return tables;
}

const ResidueTables& residue_tables() {
  static constinit MadeOnce<ResidueTables> tables(make_residue_tables);
  return tables.get();
}

// ---------------------------------------------------------------- sizes

struct Caches {
  std::int64_t l1 = 32 << 10;
  std::int64_t l2 = 1 << 20;
};

Caches find_caches() {
  Caches caches;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE); l1 > 0) caches.l1 = l1;
  if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) caches.l2 = l2;
#endif
  return caches;
}

const Caches& caches() {
  static constinit MadeOnce<Caches> found(find_caches);
  return found.get();
}

bool is_by_residues(const FusedProblem& problem) { return problem.split_a.kind == SplitKind::residues; }

// Panels of a block of one operand that a cache may hold.
constexpr std::size_t most_cached_bytes = std::size_t{32} << 20;

int integer_bits(const FusedProblem& problem) {
  return std::max(problem.split_a.integer_bits(), problem.split_b.integer_bits());
}

// Memory of the panels of a block of both operands, unless the smallest block has more.
constexpr std::int64_t preferred_panel_bytes = std::int64_t{512} << 20;

struct Sizes {
  int slices;
  int planes;
  std::int64_t depth;       // inner indices of a panel
  std::int64_t depths;      // panels along k
  std::int64_t left_block;  // vectors, multiples of panel_vectors
  std::int64_t right_block;
  std::int64_t left_tile;
  std::int64_t right_tile;

  // Panels are ordered by slice, then by depth, then by vectors.
  std::int64_t panel_bytes() const { return panel_vectors * depth; }
  std::int64_t depth_stride(std::int64_t block) const { return block * depth; }
  // Slices are a few cache lines apart from a multiple of a page, so that those of one element are in
  // different sets of the caches.
  static constexpr std::int64_t set_padding = 5 * 64;
  std::int64_t slice_stride(std::int64_t block) const { return depths * depth_stride(block) + set_padding; }
  std::size_t panels_bytes(std::int64_t block) const {
    return static_cast<std::size_t>(slices * slice_stride(block));
  }
  // Sums of the vectors of left digits.
  std::size_t vector_sums_bytes() const {
    return aligned_size(static_cast<std::size_t>(depths * left_block * slices) * sizeof(std::int32_t));
  }
  std::int64_t plane_bytes(bool by_residues) const {
    return left_tile * right_tile * (by_residues ? 1 : 4) + set_padding;
  }
  std::size_t worker_bytes(bool by_residues) const {
    return static_cast<std::size_t>(std::max(planes * plane_bytes(by_residues), slices * std::int64_t{1024}));
  }
};

// Inner indices of a panel.
std::int64_t depth_of_panels() {
  std::int64_t depth = panel_depth;
  while (depth > panel_step * 4 && panel_vectors * depth > caches().l1 * 2 / 3) depth /= 2;
  return depth;
}

// Left vectors of a tile, of which so many slices meet a right panel: one of residues, all of digits.
std::int64_t left_vectors(std::int64_t depth, int slices) {
  const std::int64_t resident = caches().l2 * 3 / 8 / (depth * slices);
  return std::clamp<std::int64_t>(resident / 128 * 128, 128, 512);
}

constexpr std::int64_t most_right_tile = 1024;

// `left` and `right`: numbers of vectors. `slices`: those of the problem, or fewer residues.
Sizes sizes_of(const FusedProblem& problem, std::int64_t left, std::int64_t right, int slices, int threads,
               const PanelStudy& study) {
  const bool by_residues = is_by_residues(problem);
  Sizes sizes{};
  sizes.slices = slices;
  sizes.planes = by_residues ? slices : problem.schedule.sums();
  sizes.depth = study.depth > 0 ? study.depth : depth_of_panels();
  sizes.depths = divide_up(problem.k, sizes.depth);
  left = round_up(left, panel_vectors);
  right = round_up(right, panel_vectors);
  sizes.left_tile = std::min(left, left_vectors(sizes.depth, by_residues ? 1 : sizes.slices));
  sizes.right_block = std::min<std::int64_t>(right, threads > 1 ? 4096 : 2048);
  const std::int64_t vector_bytes = sizes.slices * sizes.depths * sizes.depth;
  const std::int64_t left_limit = preferred_panel_bytes / vector_bytes - sizes.right_block;
  sizes.left_block =
      std::min(left, std::max<std::int64_t>(left_limit / panel_vectors * panel_vectors, 4 * sizes.left_tile));
  sizes.right_tile = std::min(sizes.right_block, most_right_tile);
  // Every thread must get some tiles.
  const auto tiles = [&] {
    return divide_up(sizes.left_block, sizes.left_tile) * divide_up(sizes.right_block, sizes.right_tile);
  };
  const auto divide = [&](std::int64_t least_tiles, std::int64_t least_edge) {
    while (tiles() < least_tiles && std::max(sizes.left_tile, sizes.right_tile) > least_edge) {
      std::int64_t& longer = sizes.right_tile >= sizes.left_tile ? sizes.right_tile : sizes.left_tile;
      longer = round_up(divide_up(longer, 2), panel_vectors);
    }
  };
  if (threads > 1) {
    divide(8 * threads, 256);  // cores may differ in speed by a factor of three
    divide(threads, 64);
  }
  const auto take = [](std::int64_t given, std::int64_t most, std::int64_t& size) {
    size = std::min(given > 0 ? given : size, most);
  };
  take(study.left_block, left, sizes.left_block);
  take(study.right_block, right, sizes.right_block);
  take(study.left_tile, sizes.left_block, sizes.left_tile);
  take(study.right_tile, sizes.right_block, sizes.right_tile);
  return sizes;
}

std::size_t scratch_of(const Sizes& sizes, bool by_residues, int threads) {
  return aligned_size(sizes.panels_bytes(sizes.left_block)) +
         aligned_size(sizes.panels_bytes(sizes.right_block)) + sizes.vector_sums_bytes() +
         static_cast<std::size_t>(std::max(threads, 1)) * aligned_size(sizes.worker_bytes(by_residues));
}

// Returns the largest of several sizes: only C tells which operand is the left one, and operands may need
// fewer residues than were planned (schemes::leave_out_moduli()).
std::size_t scratch_of_study(const FusedProblem& problem, int threads, const PanelStudy& study) {
  residue_tables();  // made by plans, so that executions allocate nothing
  const bool by_residues = is_by_residues(problem);
  const int most = problem.split_a.slices;
  std::size_t bytes = 0;
  for (int slices = by_residues ? 1 : most; slices <= most; ++slices) {
    for (const auto& [left, right] : {std::pair(problem.m, problem.n), std::pair(problem.n, problem.m)})
      bytes = std::max(
          bytes, scratch_of(sizes_of(problem, left, right, slices, threads, study), by_residues, threads));
  }
  return bytes;
}

std::size_t scratch_bytes(const FusedProblem& problem, int threads) {
  return scratch_of_study(problem, threads, {});
}

// ---------------------------------------------------------------- the product

template <class T>
class Product {
 public:
  Product(const FusedProduct<T>& product, const PanelKernels& kernels, const PanelStudy& study)
      : product_(product), problem_(product.problem), by_residues_(is_by_residues(problem_)),
        kernels_(kernels), swaps_(product.c.row_stride == 1), left_(swaps_ ? product.b : product.a),
        right_(swaps_ ? product.a : product.b), left_ranges_(swaps_ ? product.columns : product.rows),
        right_ranges_(swaps_ ? product.rows : product.columns),
        c_(swaps_ ? product.c.transposed() : product.c),
        sizes_(sizes_of(problem_, swaps_ ? problem_.n : problem_.m, swaps_ ? problem_.m : problem_.n,
                        problem_.split_a.slices, product.threads, study)),
        reduces_at_once_(study.reduces_at_once), tables_(residue_tables()),
        fractions_(tables_.fractions[by_residues_ ? static_cast<std::size_t>(sizes_.slices) : 0]) {
    make_terms();
    left_panels_ = product.scratch;
    right_panels_ = left_panels_ + aligned_size(sizes_.panels_bytes(sizes_.left_block));
    std::byte* const sums = right_panels_ + aligned_size(sizes_.panels_bytes(sizes_.right_block));
    vector_sums_ = reinterpret_cast<std::int32_t*>(sums);
    workers_ = sums + sizes_.vector_sums_bytes();
  }

  void run() {
    const std::int64_t right_tiles = divide_up(sizes_.right_block, sizes_.right_tile);
    const std::int64_t left_tiles = divide_up(sizes_.left_block, sizes_.left_tile);
    const std::int64_t panels =
        std::max(sizes_.left_block, sizes_.right_block) / panel_vectors * sizes_.depths;
    const int threads = workers_for(std::max(left_tiles * right_tiles, panels), product_.threads);
#pragma omp parallel num_threads(threads)
    {
      const FloatingEnvironment environment;
      std::byte* const scratch = workers_ + static_cast<std::size_t>(omp_get_thread_num()) *
                                                aligned_size(sizes_.worker_bytes(by_residues_));
      for (std::int64_t right = 0; right < right_.rows; right += sizes_.right_block) {
        const std::int64_t right_count = std::min(sizes_.right_block, right_.rows - right);
        split_block(right_, right_ranges_, {right, right_count}, right_panels_, sizes_.right_block, false,
                    scratch);
        for (std::int64_t left = 0; left < left_.rows; left += sizes_.left_block) {
          const std::int64_t left_count = std::min(sizes_.left_block, left_.rows - left);
          if (right == 0 || left_.rows > sizes_.left_block)
            split_block(left_, left_ranges_, {left, left_count}, left_panels_, sizes_.left_block, true,
                        scratch);
          multiply_block({left, left_count}, {right, right_count}, scratch);
        }
      }
    }
  }

 private:
  void make_terms() {
    const Schedule& schedule = problem_.schedule;
    for (const Term& term : schedule.terms)
      terms_[term_count_++] = {
          .left = swaps_ ? term.b : term.a, .right = swaps_ ? term.a : term.b, .plane = term.group};
    std::sort(terms_.begin(), terms_.begin() + static_cast<std::ptrdiff_t>(term_count_),
              [](const PanelTerm& x, const PanelTerm& y) { return x.right < y.right; });
  }

  // Splits the vectors of a block into panels. All threads call it, and leave it together.
  void split_block(const MatrixView<const T>& operand, std::span<const VectorRange> ranges, Interval vectors,
                   std::byte* panels, std::int64_t block, bool is_left, std::byte* scratch) {
    const std::int64_t panel_count = divide_up(vectors.count, panel_vectors);
    const int added = by_residues_ ? 0 : 8 * (sizes_.slices - 1);
    // Panels that no cache holds until they are read need not be read before they are written.
    const bool streams = sizes_.panels_bytes(block) > most_cached_bytes;
    const bool is_wide = by_residues_ && integer_bits(problem_) > most_narrow_bits;
    const auto& reductions = is_wide ? tables_.wide_split : tables_.split;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t task = 0; task < panel_count * sizes_.depths; ++task) {
      const std::int64_t panel = task % panel_count;
      const std::int64_t depth = task / panel_count;
      const std::int64_t first = vectors.first + panel * panel_vectors;
      std::array<double, panel_vectors> exponents{};
      const std::int64_t count = std::min(panel_vectors, vectors.end() - first);
      for (std::int64_t v = 0; v < count; ++v)
        exponents[static_cast<std::size_t>(v)] = ranges[static_cast<std::size_t>(first + v)].scale + added;
      kernels_.split({.elements = &operand(first, depth * sizes_.depth),
                      .is_double = sizeof(T) == sizeof(double),
                      .vector_stride = operand.row_stride,
                      .inner_stride = operand.column_stride,
                      .vectors = count,
                      .length = std::min(sizes_.depth, operand.columns - depth * sizes_.depth),
                      .exponents = exponents.data(),
                      .reductions = by_residues_ ? reductions.data() : nullptr,
                      .is_wide = is_wide,
                      .slices = sizes_.slices,
                      .is_left = is_left,
                      .streams = streams,
                      .panel = panels + depth * sizes_.depth_stride(block) + panel * sizes_.panel_bytes(),
                      .slice_stride = sizes_.slice_stride(block),
                      .vector_sums = is_left && !by_residues_ ? vector_sums(depth, panel) : nullptr,
                      .scratch = scratch});
    }
  }

  std::int32_t* vector_sums(std::int64_t depth, std::int64_t panel) const {
    return vector_sums_ +
           (depth * (sizes_.left_block / panel_vectors) + panel) * sizes_.slices * panel_vectors;
  }

  // Multiplies all tiles of a block and recombines them. All threads call it, and leave it together.
  void multiply_block(Interval left, Interval right, std::byte* scratch) {
    const std::int64_t left_tiles = divide_up(left.count, sizes_.left_tile);
    const std::int64_t right_tiles = divide_up(right.count, sizes_.right_tile);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t tile = 0; tile < left_tiles * right_tiles; ++tile) {
      const std::int64_t first_left = tile % left_tiles * sizes_.left_tile;
      const std::int64_t first_right = tile / left_tiles * sizes_.right_tile;
      multiply_tile(left.first, {first_left, std::min(sizes_.left_tile, left.count - first_left)},
                    right.first, {first_right, std::min(sizes_.right_tile, right.count - first_right)},
                    scratch);
    }
  }

  // `left` and `right` are relative to the block.
  void multiply_tile(std::int64_t left_block, Interval left, std::int64_t right_block, Interval right,
                     std::byte* planes) {
    const std::int64_t left_panels = divide_up(left.count, panel_vectors);
    const std::int64_t right_panels = divide_up(right.count, panel_vectors);
    const std::int64_t plane_stride = sizes_.plane_bytes(by_residues_);
    PanelProducts task{.left = nullptr,
                       .right = nullptr,
                       .next_left = nullptr,
                       .next_right = nullptr,
                       .left_stride = sizes_.slice_stride(sizes_.left_block),
                       .right_stride = sizes_.slice_stride(sizes_.right_block),
                       .panel_stride = sizes_.panel_bytes(),
                       .left_panels = left_panels,
                       .right_panels = right_panels,
                       .length = 0,
                       .terms = nullptr,
                       .term_count = 0,
                       .reductions = by_residues_ ? tables_.sums.data() : nullptr,
                       .vector_sums = nullptr,
                       .sums_stride = sizes_.slices * panel_vectors,
                       .planes = planes,
                       .plane_stride = plane_stride,
                       .is_first = true,
                       .reduces_at_once = reduces_at_once_};
    const auto left_at = [&](std::int64_t depth) {
      return left_panels_ + depth * sizes_.depth_stride(sizes_.left_block) + left.first * sizes_.depth;
    };
    const auto right_at = [&](std::int64_t depth) {
      return right_panels_ + depth * sizes_.depth_stride(sizes_.right_block) + right.first * sizes_.depth;
    };
    // `next`: terms of the next products if `depth` is the last one; the next depth follows otherwise.
    const auto multiply = [&](std::int64_t depth, std::span<const PanelTerm> terms, const PanelTerm& next) {
      const bool is_last = depth + 1 == sizes_.depths;
      const PanelTerm& follows = is_last ? next : terms.front();
      const std::int64_t next_depth = is_last ? 0 : depth + 1;
      task.left = left_at(depth);
      task.right = right_at(depth);
      task.next_left = left_at(next_depth) + follows.left * task.left_stride;
      task.next_right = right_at(next_depth) + follows.right * task.right_stride;
      task.length = std::min(sizes_.depth, problem_.k - depth * sizes_.depth);
      task.terms = terms.data();
      task.term_count = static_cast<int>(terms.size());
      task.vector_sums = by_residues_ ? nullptr : vector_sums(depth, left.first / panel_vectors);
      task.is_first = depth == 0;
      kernels_.multiply(task);
    };
    const std::span<const PanelTerm> terms(terms_.data(), term_count_);
    if (by_residues_) {  // a plane stays in the cache over all of k
      for (std::size_t t = 0; t < terms.size(); ++t) {
        for (std::int64_t depth = 0; depth < sizes_.depths; ++depth)
          multiply(depth, terms.subspan(t, 1), terms[std::min(t + 1, terms.size() - 1)]);
      }
    } else {
      for (std::int64_t depth = 0; depth < sizes_.depths; ++depth) multiply(depth, terms, terms.front());
    }
    for (std::int64_t i = 0; i < left_panels; ++i) {
      for (std::int64_t j = 0; j < right_panels; ++j)
        recombine_pair(planes + (i * right_panels + j) * sums_of_panels * (by_residues_ ? 1 : 4),
                       plane_stride, left_block + left.first + i * panel_vectors,
                       right_block + right.first + j * panel_vectors);
    }
  }

  static constexpr std::size_t lanes = panel_vectors;

  // Bits of vectors that exist and are finite.
  static std::uint32_t finite_vectors(std::span<const VectorRange> ranges) {
    std::uint32_t bits = 0;
    for (std::size_t v = 0; v < ranges.size(); ++v) bits |= ranges[v].finite() ? 1U << v : 0U;
    return bits;
  }

  template <class Vector>
  static std::span<const Vector> of_panel(std::span<const Vector> vectors, std::int64_t first) {
    const auto begin = static_cast<std::size_t>(first);
    return vectors.subspan(begin, std::min(lanes, vectors.size() - begin));
  }

  // True if double arithmetic rounds the results of residues (arith/residue/fraction_sums.hpp).
  bool are_rounded_by_doubles(std::span<const VectorRange> rows, std::span<const VectorRange> columns) const {
    const auto is_ordinary = [](const VectorRange& range) {
      return std::abs(range.scale) <= max_ordinary_exponent / 2 || !range.finite();
    };
    const T alpha = product_.alpha;
    const T beta = product_.beta;
    return (alpha == 1 || alpha == -1) && (beta == 0 || beta == 1 || beta == -1) &&
           std::ranges::all_of(rows, is_ordinary) && std::ranges::all_of(columns, is_ordinary);
  }

  // A pair of panels, whose elements are recombined.
  struct Pair {
    const std::byte* planes;
    std::int64_t plane_stride;
    std::int64_t left;  // first vectors
    std::int64_t right;
    std::span<const VectorRange> rows;
    std::span<const VectorRange> columns;
    // Bit j of open[i]: element (i, j) must be computed. Its row and column are finite.
    std::array<std::uint32_t, panel_vectors> open{};
  };

  // Calls visit(i, j, state) for the elements of a pair, in their order in memory.
  template <class Visit>
  void for_each_state(const Pair& pair, const Visit& visit) const {
    const std::int64_t stride = product_.c.rows;
    const auto rows = static_cast<std::int64_t>(pair.rows.size());
    const auto columns = static_cast<std::int64_t>(pair.columns.size());
    if (swaps_) {
      std::uint8_t* const states = product_.check->states + pair.right + pair.left * stride;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) visit(i, j, states[j + i * stride]);
      }
    } else {
      std::uint8_t* const states = product_.check->states + pair.left + pair.right * stride;
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = 0; i < rows; ++i) visit(i, j, states[i + j * stride]);
      }
    }
  }

  void find_open(Pair& pair) const {
    const std::uint32_t columns = finite_vectors(pair.columns);
    for (std::size_t i = 0; i < pair.rows.size(); ++i) pair.open[i] = pair.rows[i].finite() ? columns : 0;
    if (product_.check == nullptr) return;
    for_each_state(pair, [&](std::int64_t i, std::int64_t j, std::uint8_t state) {
      pair.open[i] &= ~(static_cast<std::uint32_t>(state == ElementCheck::closed) << j);
    });
  }

  // Counts the elements that are still open, and closes all others.
  void finish_check(const Pair& pair) const {
    std::int64_t count = 0;
    for (const std::uint32_t bits : pair.open) count += std::popcount(bits);
    if (count > 0) product_.check->open += count;
    if (!product_.check->writes) return;
    for_each_state(pair, [&](std::int64_t i, std::int64_t j, std::uint8_t& state) {
      state = (pair.open[i] >> j & 1) != 0 ? ElementCheck::open : ElementCheck::closed;
    });
  }

  // Bounds of the left and the right operand under a check.
  std::span<const RoundingBound> left_bounds() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? check.columns : check.rows;
  }
  std::span<const RoundingBound> right_bounds() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? check.rows : check.columns;
  }
  double largest_left() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? check.largest_b : check.largest_a;
  }
  double largest_right() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? check.largest_a : check.largest_b;
  }

  // `largest_of_other`: upper bound of the other operand's integers.
  static void set_bounds(std::span<const RoundingBound> bounds, double largest_of_other, PanelBounds& panel) {
    // The slacks of largest_deviation() are more than its rounding errors.
    constexpr double slack = (1 + 0x1p-20) * (1 + 0x1p-20);
    for (std::size_t v = 0; v < bounds.size(); ++v) {
      panel.inexact[v] = 0.25 * slack * bounds[v].inexact;
      panel.products[v] = 0.5 * slack * bounds[v].inexact * largest_of_other;
      panel.magnitudes[v] = 0.5 * slack * bounds[v].magnitudes;
    }
  }

  void recombine_pair(const std::byte* planes, std::int64_t plane_stride, std::int64_t left,
                      std::int64_t right) {
    Pair pair{.planes = planes,
              .plane_stride = plane_stride,
              .left = left,
              .right = right,
              .rows = of_panel(left_ranges_, left),
              .columns = of_panel(right_ranges_, right)};
    find_open(pair);
    const bool may_round = !by_residues_ || are_rounded_by_doubles(pair.rows, pair.columns);
    if (!may_round || round_pair(pair)) recombine_exactly(pair);
    if (product_.check != nullptr) finish_check(pair);
  }

  // Recombines the elements for which double arithmetic is enough. Returns what PanelKernels::recombine()
  // does.
  bool round_pair(Pair& pair) const {
    alignas(64) std::array<double, lanes> row_units{}, row_offsets{}, column_units{}, high{}, low{},
        deviation{};
    for (std::size_t v = 0; v < pair.rows.size(); ++v) {
      if (!pair.rows[v].finite()) continue;
      row_units[v] = power_of_two(-pair.rows[v].scale);
      row_offsets[v] = FractionRow::of_unit(row_units[v]).offset;
    }
    const auto alpha = static_cast<double>(product_.alpha);
    for (std::size_t v = 0; v < pair.columns.size(); ++v) {
      if (!pair.columns[v].finite()) continue;
      column_units[v] = power_of_two(-pair.columns[v].scale);
      const FractionFactor factor = fractions_.factor.times(column_units[v], alpha * column_units[v]);
      high[v] = factor.high;
      low[v] = factor.low;
      deviation[v] = factor.deviation;
    }
    alignas(64) PanelBounds row_bounds{}, column_bounds{};
    const bool is_checked = product_.check != nullptr;
    if (is_checked) {
      set_bounds(of_panel(left_bounds(), pair.left), largest_right(), row_bounds);
      set_bounds(of_panel(right_bounds(), pair.right), largest_left(), column_bounds);
    }
    const Schedule& schedule = problem_.schedule;
    return kernels_.recombine(
        {.planes = pair.planes,
         .plane_stride = pair.plane_stride,
         .plane_count = sizes_.planes,
         .row_units = row_units.data(),
         .row_offsets = row_offsets.data(),
         .column_units = column_units.data(),
         .column_high = high.data(),
         .column_low = low.data(),
         .column_deviation = deviation.data(),
         .fractions = by_residues_ ? &fractions_.digits : nullptr,
         .smallest_weight = by_residues_ ? 0 : power_of_two(schedule.sum_exponent(sizes_.planes - 1)),
         .alpha = alpha,
         .beta = static_cast<double>(product_.beta),
         .c = &c_(pair.left, pair.right),
         .is_double = sizeof(T) == sizeof(double),
         .row_stride = c_.row_stride,
         .open = pair.open.data(),
         .writes = writes(),
         .row_bounds = is_checked ? &row_bounds : nullptr,
         .column_bounds = is_checked ? &column_bounds : nullptr});
  }

  bool writes() const { return product_.check == nullptr || product_.check->writes; }

  // Recombines the open elements of a pair by exact integers.
  void recombine_exactly(Pair& pair) const {
    const auto rows = static_cast<std::int64_t>(pair.rows.size());
    const auto columns = static_cast<std::int64_t>(pair.columns.size());
    std::array<std::uint8_t, sums_of_panels * max_residues> residues;
    Accumulators sums = make_accumulators(SumType::residue, columns, rows, sizes_.slices);
    sums.data = reinterpret_cast<std::byte*>(residues.data());
    constexpr std::int64_t group = 4;  // columns that are neighbours in a plane
    for (int t = 0; t < sizes_.slices; ++t) {
      const std::byte* const plane = pair.planes + t * pair.plane_stride;
      std::uint8_t* target = sums.group<std::uint8_t>(t);
      for (std::int64_t i = 0; i < rows; ++i, target += columns) {
        std::int64_t j = 0;
        for (; j + group <= columns; j += group) std::memcpy(target + j, plane + index_in_plane(i, j), group);
        if (j < columns) std::memcpy(target + j, plane + index_in_plane(i, j), columns - j);
      }
    }
    const bool is_checked = product_.check != nullptr;
    const auto to_compute = is_checked ? ElementCheck::open : ElementCheck::proved;
    std::array<std::uint8_t, sums_of_panels> states;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j)
        states[j + i * columns] = (pair.open[i] >> j & 1) != 0 ? to_compute : ElementCheck::closed;
    }
    ElementCheck check;
    if (is_checked) {
      check = {.rows = of_panel(right_bounds(), pair.right),
               .columns = of_panel(left_bounds(), pair.left),
               .largest_a = largest_right(),
               .largest_b = largest_left(),
               .demand = product_.check->elements.demand};
    }
    MatrixView<T> c = c_.block(pair.left, pair.right, rows, columns).transposed();
    std::array<T, sums_of_panels> copy;
    if (!writes()) {
      const MatrixView<T> target{copy.data(), columns, rows, 1, columns};
      for (std::int64_t i = 0; i < rows && product_.beta != T(0); ++i) {
        for (std::int64_t j = 0; j < columns; ++j) target(j, i) = c(j, i);
      }
      c = target;
    }
    recombine_checked_residues(sums, ResidueSystem{sizes_.slices}, pair.columns, pair.rows, check,
                               product_.alpha, product_.beta, c, states.data(), /*writes=*/true, 1);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (states[j + i * columns] == ElementCheck::closed) pair.open[i] &= ~(1U << j);
      }
    }
  }

  // Index of a residue in a plane of a pair: units of four rows by 16 columns, of which four columns of all
  // rows are neighbours.
  static std::int64_t index_in_plane(std::int64_t i, std::int64_t j) {
    const std::int64_t unit = i / 16 * 8 + j / 16 * 4 + i % 16 / 4;
    return 64 * unit + 16 * (j % 16 / 4) + 4 * (i % 4) + j % 4;
  }

  const FusedProduct<T>& product_;
  const FusedProblem& problem_;
  bool by_residues_;
  const PanelKernels& kernels_;
  bool swaps_;  // C's columns are contiguous: the left operand is B
  MatrixView<const T> left_;
  MatrixView<const T> right_;
  std::span<const VectorRange> left_ranges_;
  std::span<const VectorRange> right_ranges_;
  MatrixView<T> c_;  // left vectors by right vectors
  Sizes sizes_;
  bool reduces_at_once_;
  std::array<PanelTerm, max_residues> terms_;
  std::size_t term_count_ = 0;
  const ResidueTables& tables_;
  const ResidueTables::Recombination& fractions_;
  std::byte* left_panels_;
  std::byte* right_panels_;
  std::int32_t* vector_sums_;
  std::byte* workers_;
};

template <class T>
void run(const FusedProduct<T>& product) {
  multiply_panels(product, *int8_choice().kernels->panels);
}

// ---------------------------------------------------------------- what the kernel takes

// True if sums of a plane over all of k fit 32 bits.
bool sums_fit(const FusedProblem& problem) {
  std::array<std::int64_t, max_groups> terms{};
  for (const Term& term : problem.schedule.terms) ++terms[static_cast<std::size_t>(term.group)];
  constexpr std::int64_t most_products = 131'071;
  return *std::ranges::max_element(terms) * problem.k <= most_products;
}

bool takes(const FusedProblem& problem) {
  if (int8_choice().kernels->panels == nullptr) return false;
  if (problem.type != ElementType::f32 && problem.type != ElementType::f64) return false;
  if (problem.split_a.kind != problem.split_b.kind || problem.split_a.slices != problem.split_b.slices)
    return false;
  if (!problem.weighted) return takes_residues(problem.split_a) && takes_residues(problem.split_b);
  return problem.type == ElementType::f32 && takes_digits(problem.split_a) && sums_fit(problem);
}

constexpr std::array steps{StepKind::split, StepKind::multiply, StepKind::recombine};

}  // namespace

std::string panel_details() {
  if (int8_choice().kernels->panels == nullptr) return {};
  const std::int64_t depth = depth_of_panels();
  return fmt::format(" (panels of {} x {}, tiles of {} x {} for residues and {} x {} for three digits)",
                     panel_vectors, depth, left_vectors(depth, 1), most_right_tile, left_vectors(depth, 3),
                     most_right_tile);
}

bool takes_residues(const SplitRule& rule) {
  constexpr int most_bits = 196;  // of fraction_table(): the product of the moduli is below 2^200
  return rule.format->id == FormatId::int8 && rule.kind == SplitKind::residues &&
         rule.complex_basis.empty() && rule.slices <= max_residues &&
         residue_bits(rule.slices) <= most_bits && rule.integer_bits() <= most_integer_bits;
}

bool takes_digits(const SplitRule& rule) {
  return rule.format->id == FormatId::int8 && rule.kind == SplitKind::grid_digits &&
         rule.slices <= max_digits;
}

template <class T>
void multiply_panels(const FusedProduct<T>& product, const PanelKernels& kernels, const PanelStudy& study) {
  Product<T>(product, kernels, study).run();
}
template void multiply_panels(const FusedProduct<float>&, const PanelKernels&, const PanelStudy&);
template void multiply_panels(const FusedProduct<double>&, const PanelKernels&, const PanelStudy&);

std::size_t panel_scratch_bytes(const FusedProblem& problem, int threads, const PanelStudy& study) {
  return scratch_of_study(problem, threads, study);
}

PanelStudy panel_sizes(const FusedProblem& problem, int threads, const PanelStudy& study) {
  const Sizes sizes = sizes_of(problem, problem.n, problem.m, problem.split_a.slices, threads, study);
  return {.depth = sizes.depth,
          .left_tile = sizes.left_tile,
          .right_tile = sizes.right_tile,
          .left_block = sizes.left_block,
          .right_block = sizes.right_block,
          .reduces_at_once = study.reduces_at_once};
}

const FusedKernel byte_products{.name = "byte_products",
                                .steps = steps,
                                .takes = takes,
                                .scratch_bytes = scratch_bytes,
                                .run_f32 = run<float>,
                                .run_f64 = run<double>};

}  // namespace kintsugi::core
