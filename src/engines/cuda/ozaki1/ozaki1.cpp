#include "engines/cuda/ozaki1/ozaki1.hpp"

#include <array>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/int52_gemm.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

SuccessiveTask task_of(const DeviceSuccessiveSplit& split) {
  return {.matrix = split.side.matrix,
          .item = split.side.item,
          .ranges = split.side.ranges + split.first,
          .first = split.first,
          .vectors = split.slices.vectors,
          .slices = slice_array(split.slices),
          .bits = split.bits,
          .exponents = split.exponents,
          .complete = split.complete,
          .max_depth = split.max_depth,
          .slice_counts = split.slice_counts,
          .unreachable = split.unreachable,
          .blocks = split.slices.padded_vectors() / successive_vectors};
}

// Grid of the kernels that have one thread per element. `columns` is the number of columns of C or of vectors
// of B.
Extent grid_of(const DeviceTile& tile, std::int64_t columns) {
  return {divide_up(tile.rows, elements_threads), columns};
}

ProductGroups groups_of(const Accumulators& products, int first_a, int slice_b) {
  return {.data = products.group<std::int64_t>(0),
          .group_stride = products.group_stride(),
          .count = products.groups,
          .first_a = first_a,
          .b = slice_b};
}

}  // namespace

void split_successively(const Queue& queue, const DeviceSuccessiveSplit& split,
                        const DeviceCondition& condition) {
  static const KernelName kernel{"split_successively", "split_successively"};
  SuccessiveTasks tasks;
  tasks.condition = condition;
  tasks.task[0] = task_of(split);
  launch(kernel, {tasks.task[0].blocks}, successive_threads, no_shared_bytes, queue, tasks);
}

void weigh_inner_indices(const Queue& queue, const DeviceSide& b, const DeviceBlockSliceCounts& slice_counts,
                         double* weights, const DeviceCondition& condition) {
  static const KernelName kernel{"slice_counts", "weigh_inner_indices"};
  const WeighingTask task{b, slice_counts, weights, condition};
  launch(kernel, {divide_up(b.matrix.length(), weighed_indices), slice_counts.blocks_n},
         weighed_indices * weighing_parts, no_shared_bytes, queue, task);
}

void find_slice_counts(const Queue& queue, const DeviceRowSliceCounts& rows,
                       const DeviceCondition& condition) {
  static const KernelName kernel{"slice_counts", "find_slice_counts"};
  const RowSliceCountsTask task{.a = rows.a,
                                .first = rows.first,
                                .slices = slice_array(rows.slices),
                                .exponents = rows.exponents,
                                .weights = rows.weights,
                                .bits = rows.bits,
                                .slice_counts = rows.slice_counts,
                                .unreachable = rows.unreachable,
                                .condition = condition};
  launch(kernel, {rows.slices.vectors}, slice_count_threads, no_shared_bytes, queue, task);
}

void add_products(const Queue& queue, const DeviceProductSums& sums, const Accumulators& products,
                  int first_a, int slice_b) {
  static const KernelName kernel{"product_sums", "add_products"};
  const std::int64_t vectors = sums.tile.columns * (sums.tile.c.complex() ? 2 : 1);
  const ProductGroups groups = groups_of(products, first_a, slice_b);
  launch(kernel, grid_of(sums.tile, vectors), elements_threads, no_shared_bytes, queue, sums, groups);
}

void multiply_counted(const Queue& queue, const DeviceProductSums& sums, const Slices& a, const Slices& b,
                      const Accumulators& products, int first_a, int slice_b) {
  static const KernelName kernel{"counted_products", "multiply_counted_slices"};
  launch(kernel,
         {divide_up(sums.stride, integer_tile), divide_up(sums.columns, integer_tile), products.groups},
         integer_threads, no_shared_bytes, queue, sums, slice_array(a), slice_array(b),
         groups_of(products, first_a, slice_b));
}

void finish_sums(const Queue& queue, const DeviceProductSums& sums) {
  static const std::array<KernelName, 4> kernels{KernelName{"finish_sums", "recombine_f32_products"},
                                                 KernelName{"finish_sums", "recombine_f64_products"},
                                                 KernelName{"finish_sums", "recombine_c32_products"},
                                                 KernelName{"finish_sums", "recombine_c64_products"}};
  launch(kernels[static_cast<std::size_t>(sums.tile.c.type)], grid_of(sums.tile, sums.tile.columns),
         elements_threads, no_shared_bytes, queue, sums);
}

void finish_item(const Queue& queue, const DeviceOzaki1Item& item) {
  static const KernelName kernel{"slice_counts", "finish_item"};
  launch(kernel, {}, slice_count_threads, no_shared_bytes, queue, item);
}

}  // namespace kintsugi::core::cuda
