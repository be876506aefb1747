// The reference engine: scalar code with a bit-exact model of a matrix unit as its accumulator. Every other
// engine is tested against it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "arith/complex.hpp"
#include "base/floating_environment.hpp"
#include "base/status.hpp"
#include "base/threads.hpp"
#include "engines/direct_products.hpp"
#include "engines/engine.hpp"
#include "engines/pair_element.hpp"
#include "engines/reference/models.hpp"
#include "engines/tile_element.hpp"
#include "engines/tile_loop.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core {

namespace {

// Edge of the square tiles of C. A tile's vectors are decoded once for all its elements.
constexpr std::int64_t tile = 32;

// Largest size in bytes of a decoded element of any model.
constexpr std::size_t largest_element = 8;

// Decoded slices of one tile's vectors. Slice s of vector v begins at element (s * tile + v) * length.
template <class Model>
class DecodedTile {
 public:
  using Element = typename Model::Element;
  static_assert(sizeof(Element) <= largest_element);

  DecodedTile(std::byte* memory, const Slices& slices)
      : elements_(reinterpret_cast<Element*>(memory)), length_(slices.vector_stride()) {}

  void load(const Slices& slices, std::int64_t first, std::int64_t last) {
    for (int s = 0; s < slices.count; ++s) {
      for (std::int64_t v = first; v < last; ++v) {
        Element* target = elements_ + (s * tile + v - first) * length_;
        switch (slices.format->storage_bytes) {
          case 1: decode_vector(*slices.format, slices.vector<std::uint8_t>(s, v), target); break;
          case 2: decode_vector(*slices.format, slices.vector<std::uint16_t>(s, v), target); break;
          case 4: decode_vector(*slices.format, slices.vector<std::uint32_t>(s, v), target); break;
          default: decode_vector(*slices.format, slices.vector<std::uint64_t>(s, v), target); break;
        }
      }
    }
  }

  const Element* vector(int slice, std::int64_t v) const { return elements_ + (slice * tile + v) * length_; }

 private:
  template <class Stored>
  void decode_vector(const Format& format, const Stored* stored, Element* target) const {
    for (std::int64_t p = 0; p < length_; ++p) target[p] = Model::load(format, stored[p]);
  }

  Element* elements_;
  std::int64_t length_;
};

// Runs the schedule for one element of C, in the order that schedule/schedule.hpp defines. `Outside` is the
// type of sums outside the matrix unit: float or double, or an integer type for integer sums.
template <class Model, class Outside>
class ElementSchedule {
 public:
  using Sum = typename Model::Sum;

  ElementSchedule(const Schedule& schedule, std::int64_t k)
      : schedule_(schedule), k_(k), rescale_(std::ldexp(1.0F, schedule.rescale_exponent)) {}

  void run(const DecodedTile<Model>& a, std::int64_t i, const DecodedTile<Model>& b, std::int64_t j,
           std::array<Outside, max_groups>& outside) const {
    const std::int64_t segment = schedule_.segment_length(k_);
    add_segment(a, i, b, j, 0, std::min(segment, k_), outside);
    for (std::int64_t begin = segment; begin < k_; begin += segment) {
      std::array<Outside, max_groups> sums{};
      add_segment(a, i, b, j, begin, std::min(segment, k_ - begin), sums);
      for (int s = 0; s < schedule_.sums(); ++s) outside[s] += sums[s];
    }
  }

 private:
  void add_segment(const DecodedTile<Model>& a, std::int64_t i, const DecodedTile<Model>& b, std::int64_t j,
                   std::int64_t first, std::int64_t segment, std::array<Outside, max_groups>& outside) const {
    const std::int64_t block = schedule_.block_length(k_);
    for (std::int64_t begin = first; begin < first + segment; begin += block) {
      const std::int64_t length = std::min(block, first + segment - begin);
      const std::int64_t step = schedule_.k_step == 0 ? length : schedule_.k_step;
      std::array<Sum, max_groups> inside{};
      for (std::int64_t offset = 0; offset < length; offset += step) {
        add_terms(a, i, b, j, begin + offset, std::min(step, length - offset), inside);
      }
      const bool is_first_block = begin == first;
      add_outside(inside, is_first_block, outside);
    }
  }

  void add_terms(const DecodedTile<Model>& a, std::int64_t i, const DecodedTile<Model>& b, std::int64_t j,
                 std::int64_t begin, std::int64_t length, std::array<Sum, max_groups>& inside) const {
    for (const Term& term : schedule_.terms) {
      Sum& sum = inside[term.group];
      if constexpr (std::is_floating_point_v<Sum>) {
        if (term.rescales) sum *= rescale_;
      }
      sum = Model::run(a.vector(term.a, i) + begin, b.vector(term.b, j) + begin, length, sum);
    }
  }

  void add_outside(const std::array<Sum, max_groups>& inside, bool is_first_block,
                   std::array<Outside, max_groups>& outside) const {
    for (int g = 0; g < schedule_.groups; ++g) {
      if constexpr (std::is_floating_point_v<Outside>) {
        if (schedule_.joint) {
          outside[0] += std::ldexp(static_cast<Outside>(inside[g]), schedule_.group_exponents[g]);
          continue;
        }
      }
      const auto sum = static_cast<Outside>(inside[g]);
      outside[g] = is_first_block ? sum : outside[g] + sum;
    }
  }

  const Schedule& schedule_;
  std::int64_t k_;
  float rescale_;
};

std::size_t tile_bytes(int slices, std::int64_t k) {
  return array_bytes(slices * tile, round_up(k, Slices::k_multiple), largest_element);
}

// Type of a sum as the recombination reads it.
template <class Outside>
using StoredSum = std::conditional_t<std::is_same_v<Outside, double>, float, Outside>;

template <class Model, class Outside>
void multiply_tile(const Multiplication& task, std::int64_t first_row, std::int64_t first_column,
                   std::byte* scratch) {
  const std::int64_t rows = std::min(tile, task.sums.rows - first_row);
  const std::int64_t columns = std::min(tile, task.sums.columns - first_column);
  DecodedTile<Model> a(scratch, task.a);
  DecodedTile<Model> b(scratch + tile_bytes(task.a.count, task.a.k), task.b);
  a.load(task.a, first_row, first_row + rows);
  b.load(task.b, first_column, first_column + columns);
  const ElementSchedule<Model, Outside> element(*task.schedule, task.a.k);
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      std::array<Outside, max_groups> outside{};
      element.run(a, i, b, j, outside);
      for (int g = 0; g < task.sums.groups; ++g) {
        task.sums.group<StoredSum<Outside>>(g)[first_row + i + (first_column + j) * task.sums.rows] =
            static_cast<StoredSum<Outside>>(outside[g]);
      }
    }
  }
}

template <class Model, class Outside>
void multiply_with(const Multiplication& task, std::size_t scratch_of_thread) {
  for_each_tile({task.sums.rows, task.sums.columns, tile, tile}, task.threads, task.scratch,
                scratch_of_thread, [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  multiply_tile<Model, Outside>(task, row, column, scratch);
                });
}

// Adds a real product. Conjugation, a parameter of the complex version below, changes nothing.
template <class T>
void add_product(T x, bool, T y, bool, T& sum) {
  sum = std::fma(x, y, sum);
}

// Adds a complex product. Each part of the sum is a sum of 2 k real products.
template <class T>
void add_product(const std::complex<T>& x, bool conjugate_x, const std::complex<T>& y, bool conjugate_y,
                 std::complex<T>& sum) {
  const T xi = conjugate_x ? -x.imag() : x.imag();
  const T yi = conjugate_y ? -y.imag() : y.imag();
  sum = {std::fma(-xi, yi, std::fma(x.real(), y.real(), sum.real())),
         std::fma(xi, y.real(), std::fma(x.real(), yi, sum.imag()))};
}

// Computes C = alpha * A * B + beta * C, each sum by fma over ascending k.
template <class T>
void sequential_product(const NativeProduct<T>& task) {
#pragma omp parallel for num_threads(workers_for(task.c.columns, task.threads)) schedule(static)
  for (std::int64_t j = 0; j < task.c.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < task.c.rows; ++i) {
      T sum = 0;
      for (std::int64_t p = 0; p < task.a.columns; ++p)
        add_product(task.a(i, p), task.conjugate_a, task.b(p, j), task.conjugate_b, sum);
      T& element = task.c(i, j);
      const T product = times(task.alpha, sum);
      element = task.beta == T(0) ? product : product + times(task.beta, element);
    }
  }
}

// ---------------------------------------------------------------- operands split while they are multiplied

// Calls visitor.template operator()<Unit>() with the unit of the accumulator (engines/direct_products.hpp).
template <class Visitor>
void visit_direct_unit(Accumulator accumulator, const Visitor& visitor) {
  switch (accumulator) {
#define KINTSUGI_TENSOR_CORE(unit, ...) \
  case Accumulator::unit:               \
    return visitor.template operator()<ModelOf<FormatId::bf16, Accumulator::unit>>();
#include "schedule/tensor_cores.def"
#undef KINTSUGI_TENSOR_CORE
    default: return visitor.template operator()<Fp32Nearest>();
  }
}

template <class T>
void run_directly(const FusedProduct<T>& product) {
  visit_direct_unit(product.problem.accumulator, [&]<class Unit>() { multiply_directly<T, Unit>(product); });
}

std::size_t direct_bytes(const FusedProblem& problem, int threads) {
  std::size_t bytes = 0;
  visit_direct_unit(problem.accumulator, [&]<class Unit>() { bytes = direct_product_bytes<Unit>(threads); });
  return bytes;
}

constexpr std::array reference_kernels{FusedKernel{.name = "direct_products",
                                                   .steps = direct_product_steps,
                                                   .takes = takes_direct_products,
                                                   .scratch_bytes = direct_bytes,
                                                   .run_f32 = run_directly<float>,
                                                   .run_c32 = run_directly<std::complex<float>>}};

class ReferenceEngine final : public HostEngine {
 public:
  std::string_view name() const override { return "reference"; }
  std::string_view summary() const override {
    return "scalar; its accumulator is a bit-exact model of a real matrix unit";
  }
  std::int64_t largest_size() const override { return std::numeric_limits<std::int64_t>::max(); }
  std::string unavailable_reason() const override { return {}; }
  std::string details() const override { return "portable C++, every machine"; }

  std::span<const Accumulator> accumulators(FormatId format) const override {
    using enum Accumulator;
    static constexpr std::array fp16_accumulators{h200, fp32, h200_mma, a100, v100, cdna2};
    static constexpr std::array bf16_accumulators{h200, fp32, h200_mma, a100, amx_bf16, avx512_bf16};
    static constexpr std::array tf32_accumulators{h200, fp32, h200_mma, a100};
    static constexpr std::array fp32_accumulators{fp32};
    static constexpr std::array fp64_accumulators{fp64};
    static constexpr std::array int8_accumulators{int32};
    static constexpr std::array int52_accumulators{int128};
    switch (format) {
      case FormatId::fp16: return fp16_accumulators;
      case FormatId::bf16: return bf16_accumulators;
      case FormatId::tf32: return tf32_accumulators;
      case FormatId::fp8_e4m3:
      case FormatId::fp8_e5m2:
      case FormatId::fp32: return fp32_accumulators;
      case FormatId::int8: return int8_accumulators;
      case FormatId::fp64: return fp64_accumulators;
      case FormatId::int52: return int52_accumulators;
    }
    return {};
  }

  SliceStorage slice_storage(FormatId) const override { return SliceStorage::packed; }
  // A model takes at least as long per product as the scalar native one. 52-bit words rank last, because none
  // of the modeled matrix units multiplies them.
  double relative_rate(FormatId format) const override { return format == FormatId::int52 ? 1.0 / 64 : 1; }

  double native_double_double_time_ratio() const override { return 8; }
  bool native_order_is_fixed() const override { return true; }

  std::size_t scratch_bytes(const Schedule& schedule, FormatId, std::int64_t k, int threads) const override {
    return static_cast<std::size_t>(std::max(threads, 1)) *
           (tile_bytes(schedule.slices_a, k) + tile_bytes(schedule.slices_b, k));
  }

  bool reduces_sums_modulo() const override { return false; }
  bool multiplies_tiles() const override { return true; }
  bool multiplies_directly() const override { return true; }
  std::span<const FusedKernel> fused_kernels() const override { return reference_kernels; }

  void multiply(const Multiplication& task) const override {
    if (task.schedule->tiles.depth > 0) return multiply_tiles_by_elements(task);
    constexpr int one_thread = 1;
    const std::size_t scratch = scratch_bytes(*task.schedule, task.a.format->id, task.a.k, one_thread);
    const auto run = [&]<class Model>() {
      using Sum = typename Model::Sum;
      // Sums of int32 accumulators and of FP64 accumulators, which hold integers, are added outside in 64-bit
      // integers.
      using Outside = std::conditional_t<std::is_same_v<Sum, std::int32_t> || std::is_same_v<Sum, double>,
                                         std::int64_t, Sum>;
      if constexpr (std::is_same_v<Sum, float>) {
        if (task.schedule->integer_sums) return multiply_with<Model, std::int64_t>(task, scratch);
        if (adds_outside_in_fp64(task.accumulator)) return multiply_with<Model, double>(task, scratch);
      }
      multiply_with<Model, Outside>(task, scratch);
    };
    if (!visit(task.a.format->id, task.accumulator, run)) {
      fail(Status::internal, "the reference engine has no model \"{}\" for {}",
           accumulator_name(task.accumulator), task.a.format->name);
    }
  }

  void native(const NativeProduct<float>& product) const override { sequential_product(product); }
  void native(const NativeProduct<double>& product) const override { sequential_product(product); }
  void native(const NativeProduct<std::complex<float>>& product) const override {
    sequential_product(product);
  }
  void native(const NativeProduct<std::complex<double>>& product) const override {
    sequential_product(product);
  }
  void native(const NativeProduct<DoubleDouble>& product) const override { sequential_pair_product(product); }

 private:
  template <class Run>
  static bool visit(FormatId format, Accumulator accumulator, const Run& run) {
    switch (format) {
      case FormatId::fp16: return visit_model<FormatId::fp16>(accumulator, run);
      case FormatId::bf16: return visit_model<FormatId::bf16>(accumulator, run);
      case FormatId::tf32: return visit_model<FormatId::tf32>(accumulator, run);
      case FormatId::fp8_e4m3: return visit_model<FormatId::fp8_e4m3>(accumulator, run);
      case FormatId::fp8_e5m2: return visit_model<FormatId::fp8_e5m2>(accumulator, run);
      case FormatId::int8: return visit_model<FormatId::int8>(accumulator, run);
      case FormatId::int52: return visit_model<FormatId::int52>(accumulator, run);
      case FormatId::fp32: return visit_model<FormatId::fp32>(accumulator, run);
      case FormatId::fp64: return visit_model<FormatId::fp64>(accumulator, run);
    }
    return false;
  }
};

}  // namespace

const Engine& reference_engine() {
  static const ReferenceEngine engine;
  return engine;
}

}  // namespace kintsugi::core
