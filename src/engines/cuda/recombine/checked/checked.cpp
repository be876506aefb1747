// Selection of checked candidates, and exact computation of the elements that the check leaves open.
#include <algorithm>
#include <array>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

const KernelName& recompute_kernel(ElementType type) {
  static const std::array<KernelName, 4> kernels{
      KernelName{"exact_products", "recompute_f32"}, KernelName{"exact_products", "recompute_f64"},
      KernelName{"exact_products", "recompute_c32"}, KernelName{"exact_products", "recompute_c64"}};
  return kernels[static_cast<std::size_t>(type)];
}

// Sizes for each element type.
using SharedBytes = std::array<std::int64_t, 4>;

// Number of thread blocks of a kernel whose warps compute one element at a time. Each element of the tile
// gets its own warp, as long as max_exact_blocks allows it.
std::int64_t exact_blocks(const DeviceTile& tile) {
  return std::min(divide_up(tile.rows * tile.columns, std::int64_t{exact_warps}), max_exact_blocks);
}

// Sums open elements in two doubles, if many are open and the rows of A or the columns of B are adjacent in
// memory.
void recompute_adjacent_vectors(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open) {
  static const KernelName kernel{"adjacent_vectors", "recompute_adjacent_vectors_f64",
                                 waits_for_grid_dependency};
  const bool of_rows = block.a.matrix.row_stride == 1;
  if (block.c.type != ElementType::f64 || open.in_own_arithmetic ||
      (!of_rows && block.b.matrix.row_stride != 1) || block.rows * block.columns < least_elements_of_block)
    return;
  const std::int64_t bands = divide_up(of_rows ? block.rows : block.columns, std::int64_t{band_vectors});
  const std::int64_t blocks = 2 * sm_count();  // thread blocks that a device holds
  const std::int64_t parts = std::max(blocks / bands, std::int64_t{1});
  launch(kernel, {bands * parts}, adjacent_vectors_threads, adjacent_vectors_shared_bytes, queue, block, open,
         of_rows, parts);
}

}  // namespace

void multiply_exactly(const Queue& queue, const DeviceTile& tile) {
  static constexpr SharedBytes shared_bytes{exact_shared_bytes<float>, exact_shared_bytes<double>,
                                            exact_shared_bytes<Complex<float>>,
                                            exact_shared_bytes<Complex<double>>};
  const DeviceOpenElements no_masks;
  DeviceReport* const no_report = nullptr;
  launch(recompute_kernel(tile.c.type), {exact_blocks(tile)}, exact_warps * exact_lanes,
         shared_bytes[static_cast<std::size_t>(tile.c.type)], queue, tile, no_masks, no_report);
}

void recompute(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open,
               DeviceReport* report) {
  static const KernelName list_masks{"chain", "list_open_masks", waits_for_grid_dependency};
  static constexpr SharedBytes shared_bytes{recompute_shared_bytes<float>, recompute_shared_bytes<double>,
                                            recompute_shared_bytes<Complex<float>>,
                                            recompute_shared_bytes<Complex<double>>};
  recompute_adjacent_vectors(queue, block, open);
  const std::int64_t masks = open.masks_per_column * block.columns;
  launch(list_masks, {std::min(divide_up(masks, list_threads), max_list_blocks)}, list_threads,
         no_shared_bytes, queue, open, masks);
  launch(recompute_kernel(block.c.type), {exact_blocks(block)}, exact_warps * exact_lanes,
         shared_bytes[static_cast<std::size_t>(block.c.type)], queue, block, open, report);
}

void choose_checked(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                    const DeviceCheckedChain& chain, DeviceSelection* selection, DeviceCheckState* state,
                    DeviceReport* report) {
  static const KernelName kernel{"chain", "sample_open_elements", waits_for_grid_dependency};
  const std::int64_t length = a.matrix.length();
  const bool is_single = a.matrix.type == ElementType::f32 || a.matrix.type == ElementType::c32;
  const SampleTask task{
      .sides = {a, b},
      .vectors = {std::min(a.matrix.vectors(), sample_vectors), std::min(b.matrix.vectors(), sample_vectors)},
      .length = std::min(length, sample_length),
      .step = std::max(length / sample_length, std::int64_t{1}),
      .digits = is_single ? 24 : 53,
      .parts = a.matrix.complex() ? 2.0 : 1.0,
      .chain = chain,
      .selection = selection,
      .state = state,
      .report = report};
  clear(queue, state, sizeof *state);
  launch(kernel, {task.vectors[0] * task.vectors[1]}, sample_threads, no_shared_bytes, queue, task);
}

namespace {

void advance(const Queue& queue, const DeviceCheckedChain& chain, int index, double elements,
             const DeviceSelection* selection, DeviceCheckState* state) {
  static const KernelName kernel{"chain", "advance_checks", waits_for_grid_dependency};
  launch(kernel, {}, warp_size, no_shared_bytes, queue, chain, index, elements, selection, state);
}

}  // namespace

void begin_checks(const Queue& queue, const DeviceSelection* selection, DeviceCheckState* state) {
  advance(queue, {}, 0, 0, selection, state);
}

void advance_checks(const Queue& queue, const DeviceCheckedChain& chain, int index, std::int64_t elements,
                    DeviceCheckState* state) {
  advance(queue, chain, index, static_cast<double>(elements), nullptr, state);
}

}  // namespace kintsugi::core::cuda
