// Kinds of steps of a plan, and kernels that do the work of several of them.
#pragma once

#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/queue.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"
#include "schedule/accumulator.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core {

// recombine/recombine.hpp
struct ElementCheck;

// engines/cuda/step_data.hpp
struct DeviceCounters;
struct DeviceFusedProduct;
struct DeviceShape;

// KINTSUGI_STEP(name): the kinds in the order in which most plans have them.
#define KINTSUGI_STEPS(STEP)                                                                  \
  /* Loops over the steps that follow: items of a batch, blocks of C, tiles of a block. */    \
  STEP(for_items)                                                                             \
  STEP(for_blocks)                                                                            \
  STEP(for_tiles)                                                                             \
  /* Ranges of the operands' vectors, and the selection of a candidate by them. */            \
  STEP(find_ranges)                                                                           \
  STEP(find_norms)                                                                            \
  STEP(find_scaling_norms)                                                                    \
  STEP(summarize)                                                                             \
  STEP(select)                                                                                \
  /* Slices, their products, and the sums into C. */                                          \
  STEP(split)                                                                                 \
  STEP(split_by_norms) /* find_norms and split in one read of the operands */                 \
  STEP(count_tiles)    /* for the report, of slices with exponents per tile */                \
  STEP(multiply)                                                                              \
  STEP(recombine)                                                                             \
  STEP(recombine_last) /* of a candidate whose last tile waits for the steps of the others */ \
  STEP(fused)          /* a kernel that does the work of several steps */                     \
  /* Candidates whose elements are checked. */                                                \
  STEP(choose_checked)                                                                        \
  STEP(begin_checks)                                                                          \
  STEP(split_magnitudes)                                                                      \
  STEP(find_rounding_errors)                                                                  \
  STEP(multiply_magnitudes)                                                                   \
  STEP(recombine_checked)                                                                     \
  STEP(advance_checks)                                                                        \
  STEP(recompute)                                                                             \
  STEP(multiply_checked) /* on the host: all steps of a block */                              \
  /* Ozaki scheme I. */                                                                       \
  STEP(count_slices)                                                                          \
  STEP(split_successively)                                                                    \
  STEP(multiply_successively)                                                                 \
  STEP(finish_item)                                                                           \
  STEP(multiply_by_ozaki1) /* on the host: all steps of an item */                            \
  /* Products of the operands themselves. */                                                  \
  STEP(multiply_exactly)                                                                      \
  STEP(multiply_natively)           /* by the vendor library or the engine's own kernel */    \
  STEP(select_or_multiply_natively) /* select and multiply_natively in one launch */          \
  STEP(scale)                       /* beta C where alpha is 0 */                             \
  STEP(write_special_values)

enum class StepKind : std::uint8_t {
#define KINTSUGI_STEP(name) name,
  KINTSUGI_STEPS(KINTSUGI_STEP)
#undef KINTSUGI_STEP
};

constexpr std::string_view step_name(StepKind kind) {
  constexpr std::array names{
#define KINTSUGI_STEP(name) std::string_view(#name),
      KINTSUGI_STEPS(KINTSUGI_STEP)
#undef KINTSUGI_STEP
  };
  return names[static_cast<std::size_t>(kind)];
}

// The program and problem of a candidate, as far as kernels depend on them. On the host m and n are those of
// the largest block of C.
struct FusedProblem {
  const SplitRule& split_a;
  const SplitRule& split_b;
  const Schedule& schedule;
  Accumulator accumulator;
  bool weighted;  // sums are recombined with weights that are powers of two, which do not depend on data
  ElementType type;
  std::int64_t m, n, k;
  bool is_double_double = false;  // elements are pairs of doubles; the type is f64

  FormatId format() const { return split_a.format->id; }
};

// Check of a product's elements under a contract that allows no error (ElementDemand::coefficient = 0).
// Closed elements are not computed. An open element is closed if its result is certainly correctly rounded,
// or if its row or column has special values. No element is `proved`.
struct FusedCheck {
  const ElementCheck& elements;
  std::uint8_t* states;             // ElementCheck::State of element (i, j) at i + j * c.rows
  bool writes;                      // false: C and `states` are not changed
  std::atomic<std::int64_t>& open;  // to which the number of elements that stay open is added
};

// Operands of a fused kernel in host memory. a is m x k, b is n x k: the rows of both are the vectors. Ranges
// have the scales of the problem's splits; complex elements have two for each vector of b
// (base/embedding.hpp).
template <class T>
struct FusedProduct {
  const FusedProblem& problem;
  MatrixView<const T> a;
  MatrixView<const T> b;
  std::span<const VectorRange> rows;
  std::span<const VectorRange> columns;
  MatrixView<T> c;
  T alpha;
  T beta;
  std::byte* scratch;  // FusedKernel::scratch_bytes() bytes
  int threads;
  const FusedCheck* check = nullptr;  // nullptr: all elements are computed
  // Counter of the elements that the program's own test did not accept; nullptr: they are not counted.
  std::atomic<std::int64_t>* recomputed = nullptr;
  bool conjugates_a = false;
  bool conjugates_b = false;
};

// A kernel's tiles and other properties for products of one shape, which the kernel alone reads.
struct FusedVariant {
  alignas(8) std::array<std::byte, 120> data{};
};

// A kernel that does the work of consecutive steps of a candidate, which it replaces in plans.
struct FusedKernel {
  std::string_view name;
  std::span<const StepKind> steps;  // steps of a block of C that the kernel replaces, in this order
  bool (*takes)(const FusedProblem& problem);
  // In host memory, for kernels of {split, multiply, recombine}: scratch_bytes, and run_f32, run_f64,
  // run_c32, run_c64 or run_dd for the types of element that the kernel takes. The scratch is also enough
  // for programs with fewer moduli. Kernels that take residues also check elements.
  std::size_t (*scratch_bytes)(const FusedProblem& problem, int threads) = nullptr;
  void (*run_f32)(const FusedProduct<float>& product) = nullptr;
  void (*run_f64)(const FusedProduct<double>& product) = nullptr;
  void (*run_c32)(const FusedProduct<std::complex<float>>& product) = nullptr;
  void (*run_c64)(const FusedProduct<std::complex<double>>& product) = nullptr;
  void (*run_dd)(const FusedProduct<DoubleDouble>& product) = nullptr;
  // On a device, for kernels of {multiply, recombine}: the variant that is expected to be fastest for
  // products of the shape, and a launch of it. All variants give the same bits. `scratch` has as many bytes
  // as all variants need at most; some of them may be counters, which are 0 when the kernel begins.
  FusedVariant (*choose)(const DeviceShape& shape) = nullptr;
  std::size_t (*device_scratch_bytes)(const DeviceShape& shape) = nullptr;
  DeviceCounters (*counters)(const DeviceShape& shape, std::byte* scratch) = nullptr;  // nullptr: none
  void (*launch)(const Queue& queue, const DeviceFusedProduct& product, const FusedVariant& variant,
                 std::byte* scratch) = nullptr;
};

// Returns the function of a kernel of the host for elements of type T; nullptr if it takes no such elements.
template <class T>
auto runner_of(const FusedKernel& kernel) {
  if constexpr (std::is_same_v<T, float>) return kernel.run_f32;
  if constexpr (std::is_same_v<T, double>) return kernel.run_f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return kernel.run_c32;
  if constexpr (std::is_same_v<T, std::complex<double>>) return kernel.run_c64;
  if constexpr (std::is_same_v<T, DoubleDouble>) return kernel.run_dd;
}

}  // namespace kintsugi::core
