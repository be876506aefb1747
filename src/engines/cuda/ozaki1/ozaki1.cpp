#include "engines/cuda/ozaki1/ozaki1.hpp"

#include <array>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/clusters.hpp"
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
          .by_sigma = split.by_sigma,
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

// Launches the kernel that multiplies slices by wgmma. `params` has the slices of the products.
void launch_slice_products(const Queue& queue, const Slices& a, const Slices& b, SliceProductsParams params) {
  params.tile_rows = static_cast<std::int32_t>(divide_up(a.vectors, SliceTile::rows));
  params.tile_columns = static_cast<std::int32_t>(divide_up(b.vectors, SliceTile::vectors));
  params.k_blocks = static_cast<std::int32_t>(a.vector_stride() / SliceTile::block_k);
  params.run_blocks = static_cast<std::int32_t>(params.sums.k_block / SliceTile::block_k);
  launch(
      *current_family().slice_products,
      {SliceTile::cluster * std::int64_t{params.tile_rows} * params.tile_columns, 1, 1, SliceTile::cluster},
      SliceTile::threads, SliceTile::shared_bytes(params.carries()), queue,
      tensor_map(a, 1, SliceTile::rows / SliceTile::cluster), tensor_map(b, 1, SliceTile::block_vectors),
      params);
}

}  // namespace

bool has_slice_products(FormatId format, std::int64_t k_block) {
  const Family& family = current_family();
  return format == FormatId::fp16 && k_block >= SliceTile::block_k && family.slice_products != nullptr &&
         family.has_gemm_kernels();
}

bool adds_slice_products(FormatId format, std::int64_t k, std::int64_t k_block, int bits) {
  return has_slice_products(format, k_block) && (k_block >= k || SliceTile::carries(k, bits));
}

void add_slice_products(const Queue& queue, const DeviceProductSums& sums, const Slices& a, const Slices& b) {
  SliceProductsParams params{.sums = sums, .groups = {.count = sums.slices}, .end_b = sums.slices};
  if (sums.k_block < a.k) params.sums.k_block = SliceTile::carried_run(sums.bits);
  launch_slice_products(queue, a, b, params);
}

void split_successively(const Queue& queue, const DeviceSuccessiveSplit& split,
                        const DeviceCondition& condition) {
  static const KernelName kernel{"split_successively", "split_successively"};
  static const KernelName vector_kernel{"split_successively", "slice_vectors"};
  for (const int threads : {max_vector_threads / 2, max_vector_threads}) {
    if (split.slices.vector_stride() > std::int64_t{threads} * vector_elements) continue;
    return launch(vector_kernel, {split.slices.padded_vectors()}, threads, no_shared_bytes, queue,
                  task_of(split), condition);
  }
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
                                .rows = rows.slices.vectors,
                                .slices = slice_array(rows.slices),
                                .exponents = rows.exponents,
                                .weights = rows.weights,
                                .bits = rows.bits,
                                .slice_counts = rows.slice_counts,
                                .unreachable = rows.unreachable,
                                .condition = condition};
  launch(kernel, {divide_up(rows.slices.vectors, counted_rows)}, slice_count_threads, no_shared_bytes, queue,
         task);
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
  const ProductGroups groups = groups_of(products, first_a, slice_b);
  if (has_slice_products(a.format->id, sums.k_block)) {
    return launch_slice_products(queue, a, b,
                                 {.sums = sums, .groups = groups, .first_b = slice_b, .end_b = slice_b + 1});
  }
  launch(kernel,
         {divide_up(sums.stride, integer_tile), divide_up(sums.columns, integer_tile), products.groups},
         integer_threads, no_shared_bytes, queue, sums, slice_array(a), slice_array(b), groups);
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
