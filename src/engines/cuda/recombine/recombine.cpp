#include "engines/cuda/recombine/recombine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

using KernelsOfTypes = std::array<KernelName, 4>;

const KernelName& kernel_of_type(const KernelsOfTypes& kernels, ElementType type) {
  return kernels[static_cast<std::size_t>(type)];
}

// Recombines sums of 52-bit words.
void recombine_words(const Queue& queue, const WeightedSums& sums, const DeviceTile& tile) {
  static const KernelsOfTypes kernels{
      KernelName{"words", "recombine_f32_words"}, KernelName{"words", "recombine_f64_words"},
      KernelName{"words", "recombine_c32_words"}, KernelName{"words", "recombine_c64_words"}};
  launch(kernel_of_type(kernels, tile.c.type), {divide_up(tile.rows, elements_threads), tile.columns},
         elements_threads, no_shared_bytes, queue, tile, sums);
}

}  // namespace

void recombine_weighted(const Queue& queue, const Accumulators& sums, std::span<const int> exponents,
                        const DeviceTile& tile) {
  static const KernelName f32_floats{"weighted", "recombine_f32_weighted_floats"};
  static const KernelsOfTypes kernels{KernelName{"weighted", "recombine_f32_weighted_integers"},
                                      KernelName{"weighted", "recombine_f64_weighted"},
                                      KernelName{"weighted", "recombine_c32_weighted"},
                                      KernelName{"weighted", "recombine_c64_weighted"}};
  if (sums.type == SumType::residue)
    fail(Status::internal, "engine cuda got sums of type {} to weigh", static_cast<int>(sums.type));
  const auto group_exponents = exponents.first(static_cast<std::size_t>(sums.groups));
  WeightedSums weighted{
      .data = sums.data,
      .rows = sums.rows,
      .group_stride = sums.group_stride(),
      .groups = sums.groups,
      .smallest_exponent = *std::min_element(group_exponents.begin(), group_exponents.end()),
      .exponents = {},
      .are_floats = sums.type == SumType::f32};
  std::transform(group_exponents.begin(), group_exponents.end(), weighted.exponents,
                 [](int exponent) { return static_cast<std::int16_t>(exponent); });
  if (sums.type == SumType::i128) return recombine_words(queue, weighted, tile);
  const bool are_f32_floats = weighted.are_floats && tile.c.type == ElementType::f32;
  launch(are_f32_floats ? f32_floats : kernel_of_type(kernels, tile.c.type),
         {divide_up(tile.rows, block_rows) * divide_up(tile.columns, block_columns(tile.c.type))},
         block_threads, no_shared_bytes, queue, tile, weighted);
}

namespace {

constexpr std::int64_t threads = 256;  // threads per block of the kernels that scale C or add sums outside

void add_k_block(const Queue& queue, const KBlockSums& sums) {
  static const KernelName kernel{"add_k_block", "add_k_block"};
  launch(kernel, {divide_up(sums.elements, k_block_elements * threads)}, threads, no_shared_bytes, queue,
         sums);
}

}  // namespace

void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item, const DeviceScalars& scalars,
           const DeviceCondition& condition) {
  static const KernelName real{"scale", "scale_real"};
  static const KernelName complex{"scale", "scale_complex"};
  ScaledMatrix matrix{c, item, scalars, condition};
  const bool rows_are_contiguous = c.column_stride < c.row_stride || c.rows == 1;
  if (rows_are_contiguous) {  // the kernel gets the transpose, whose columns are contiguous
    std::swap(matrix.c.rows, matrix.c.columns);
    std::swap(matrix.c.row_stride, matrix.c.column_stride);
  }
  launch(c.complex() ? complex : real, {divide_up(matrix.c.rows, scaled_rows) * matrix.c.columns}, threads,
         no_shared_bytes, queue, matrix);
}

void add_outside(const Queue& queue, const std::int32_t* inside, std::int64_t elements, int modulus,
                 bool is_first_k_block, void* outside) {
  KBlockSums sums{inside, outside, elements, KBlockSums::Inside::int32, is_first_k_block};
  if (modulus != 0) {
    sums.modulus = static_cast<std::uint32_t>(modulus);
    sums.reciprocal = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / sums.modulus);
  }
  add_k_block(queue, sums);
}

void add_exact_sums_outside(const Queue& queue, const void* inside, bool inside_is_fp64,
                            std::int64_t elements, bool is_first_k_block, std::int64_t* outside) {
  const auto type = inside_is_fp64 ? KBlockSums::Inside::fp64 : KBlockSums::Inside::fp32;
  add_k_block(queue, {inside, outside, elements, type, is_first_k_block});
}

}  // namespace kintsugi::core::cuda
