#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "arith/underflow.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/recombine/native/finish_task.hpp"
#include "engines/cuda/recombine/recombine.hpp"

namespace kintsugi::core::cuda {

namespace {

bool is_single(ElementType type) { return type == ElementType::f32 || type == ElementType::c32; }

// Magnitude of alpha, or for complex numbers an upper bound of it: the sum of its parts' magnitudes.
double magnitude_bound(const std::complex<double>& alpha) {
  return std::abs(alpha.real()) + std::abs(alpha.imag());
}

// Shape of the tiles in which the sums of `tile` are tested. Where there are few lines a tile has more of
// each, so that no thread is idle. A small C is cut into enough tiles for all SMs; a large C has large tiles,
// whose threads have many loads in flight.
FinishTile finish_tile(const DeviceTile& tile) {
  constexpr int max_elements_of_thread = 32;
  const bool lines_are_rows = tile.c.column_stride < tile.c.row_stride;
  const std::int64_t length = lines_are_rows ? tile.columns : tile.rows;
  const std::int64_t lines = lines_are_rows ? tile.rows : tile.columns;
  FinishTile shape;
  if (lines <= 32) {
    shape.log2_line_length = 8;
  } else if (length > 64 && length <= 128) {
    shape.log2_line_length = 7;
  }
  const std::int64_t tiles_along_lines = divide_up(length, shape.line_length()) * tile.items;
  const std::int64_t tiles_across_lines = 2 * sm_count() / tiles_along_lines + 1;  // two tiles for each SM
  const std::int64_t lines_for_all_sms =
      divide_up(divide_up(lines, tiles_across_lines), shape.lines_at_once()) * shape.lines_at_once();
  const std::int64_t max_lines = max_elements_of_thread * shape.lines_at_once();
  shape.lines = static_cast<int>(std::min(lines_for_all_sms, max_lines));
  return shape;
}

// Sums in C's own memory (`in_place`) have been multiplied by alpha, which may have scaled up sums that had
// underflowed. Sums in other memory have not been multiplied by alpha.
FinishTask finish_task(const DeviceTile& tile, bool in_place) {
  const std::int64_t products = (tile.c.complex() ? 2 : 1) * tile.a.matrix.columns;
  const bool is_fp32 = is_single(tile.c.type);
  const UnderflowLimits limits =
      is_fp32 ? underflow_limits<float>(products) : underflow_limits<double>(products);
  const double alpha = magnitude_bound(tile.scalars.alpha);
  const double largest_number =
      is_fp32 ? double{std::numeric_limits<float>::max()} : std::numeric_limits<double>::max();
  FinishTask task;
  task.min_sum = in_place ? limits.sum * std::fmax(alpha, 1) : limits.sum;
  if (is_fp32) task.min_sum = static_cast<float>(task.min_sum);  // as the kernels compare
  task.min_product = limits.product;
  task.tile = finish_tile(tile);
  const bool lines_are_rows = tile.c.column_stride < tile.c.row_stride;
  task.tiles_of_rows = static_cast<unsigned int>(
      divide_up(tile.rows, lines_are_rows ? task.tile.lines : task.tile.line_length()));
  task.tiles = task.tiles_of_rows *
               divide_up(tile.columns, lines_are_rows ? task.tile.line_length() : task.tile.lines);
  task.min_proved_product = limits.product / std::fmin(alpha, 1);
  // The factor of 2 is more than all roundings of a sum can contribute.
  task.max_proved_product = largest_number / (2 * static_cast<double>(products) * std::fmax(alpha, 1));
  return task;
}

// Returns an operand's batch items from `item` on as lines, whole items as one line where they are
// contiguous. `data` is nullptr if numbers are contiguous along neither dimension, or items have addresses of
// their own.
OperandLines lines_of(const DeviceMatrix& matrix, std::int64_t item, std::int64_t items) {
  const bool along_k = matrix.column_stride == 1;
  if (matrix.pointers || (!along_k && matrix.row_stride != 1)) return {};
  const std::int64_t parts = matrix.complex() ? 2 : 1;
  OperandLines lines{
      .data = static_cast<const std::byte*>(matrix.data) +
              item * matrix.batch_stride * static_cast<std::int64_t>(element_bytes(matrix.type)),
      .length = parts * (along_k ? matrix.columns : matrix.rows),
      .lines = along_k ? matrix.rows : matrix.columns,
      .stride = parts * (along_k ? matrix.row_stride : matrix.column_stride),
      .items = matrix.batch_stride == 0 ? 1 : items,
      .item_stride = parts * matrix.batch_stride};
  if (lines.stride == lines.length || lines.lines == 1) {
    lines.length *= lines.lines;
    lines.lines = 1;
  }
  return lines;
}

double count_numbers(const OperandLines& operand) {
  return static_cast<double>(operand.length) * static_cast<double>(operand.lines) *
         static_cast<double>(operand.items);
}

// Bytes of sums that a copy would read in the time that the test loses because C's shape leaves threads idle.
double bytes_lost_to_shape(const DeviceTile& tile, const FinishTask& task) {
  constexpr int max_elements_of_thread = 32;
  const bool lines_are_rows = tile.c.column_stride < tile.c.row_stride;
  const std::int64_t lines = lines_are_rows ? tile.rows : tile.columns;
  const std::int64_t tile_lines = std::min<std::int64_t>(task.tile.lines, lines);
  // A thread reads 64 bytes at a time. A tile begins and ends in the time of about one such read.
  const auto reads_of = [&](std::int64_t elements_of_thread) {
    const std::int64_t elements_of_read = 64 / static_cast<std::int64_t>(element_bytes(tile.c.type));
    return static_cast<double>(1 + divide_up(elements_of_thread, elements_of_read));
  };
  const double time = static_cast<double>(task.tiles * tile.items) *
                      reads_of(divide_up(tile_lines, task.tile.lines_at_once()));
  const double elements =
      static_cast<double>(tile.rows) * static_cast<double>(tile.columns) * static_cast<double>(tile.items);
  const double least_time =
      elements / (native_threads * max_elements_of_thread) * reads_of(max_elements_of_thread);
  return elements * static_cast<double>(element_bytes(tile.c.type)) * (time / least_time - 1);
}

// True if a kernel that reads all sums as one array would take less time than their test in tiles. Such a
// kernel, and a test that need not read them, take as long as reading some 8 MiB.
bool reads_sums_first(const DeviceTile& tile, const FinishTask& task) {
  constexpr double bytes_of_launches = 8 << 20;
  return bytes_lost_to_shape(tile, task) > bytes_of_launches;
}

// True if magnitudes can prove sums that lie in C, and the scratch memory suffices to find them.
bool can_find_magnitudes(const DeviceTile& tile, std::size_t scratch_bytes) {
  constexpr std::size_t bytes = MagnitudesTask::blocks * sizeof(MagnitudeRecord);
  const double alpha = magnitude_bound(tile.scalars.alpha);
  return scratch_bytes >= bytes && tile.a.matrix.columns > 0 && !tile.scalars.on_device() && alpha > 0 &&
         std::isfinite(alpha);
}

// Launches the kernel that finds the magnitudes of both operands, or of the sums, and makes the kernels of
// `task` read them. Returns false, with nothing done, if the layout of a matrix does not allow that.
bool find_magnitudes(const Queue& queue, const DeviceTile& tile, NativeTest test, std::byte* scratch,
                     FinishTask& task) {
  static const KernelName fp32_kernel{"find_magnitudes", "find_magnitudes_f32", waits_for_grid_dependency};
  static const KernelName fp64_kernel{"find_magnitudes", "find_magnitudes_f64", waits_for_grid_dependency};
  MagnitudesTask magnitudes;
  if (test == NativeTest::operands) {
    magnitudes.operands[0] = lines_of(tile.a.matrix, tile.a.item, tile.items);
    magnitudes.operands[1] = lines_of(tile.b.matrix, tile.b.item, tile.items);
    const double share_of_a = count_numbers(magnitudes.operands[0]) /
                              (count_numbers(magnitudes.operands[0]) + count_numbers(magnitudes.operands[1]));
    magnitudes.blocks_of_a =
        std::clamp(static_cast<int>(share_of_a * MagnitudesTask::blocks), 1, MagnitudesTask::blocks - 1);
    if (magnitudes.operands[1].data == nullptr) return false;
  } else {
    magnitudes.operands[0] = lines_of(tile.c, tile.item, tile.items);
    magnitudes.blocks_of_a = MagnitudesTask::blocks;
    magnitudes.zeros_are_special = task.records_are_of_sums = true;
  }
  if (magnitudes.operands[0].data == nullptr) return false;
  magnitudes.records = reinterpret_cast<MagnitudeRecord*>(scratch);
  task.records = magnitudes.records;
  task.records_of_a = magnitudes.blocks_of_a;
  launch(is_single(tile.c.type) ? fp32_kernel : fp64_kernel, {MagnitudesTask::blocks},
         MagnitudesTask::threads, 0, queue, magnitudes);
  return true;
}

}  // namespace

void finish_native(const Queue& queue, const DeviceTile& tile, const DeviceMatrix& sums, NativeTest test,
                   std::byte* scratch, std::size_t scratch_bytes) {
#define KINTSUGI_FINISH(name) \
  KernelName { "finish_native", name, waits_for_grid_dependency }
  static const std::array<KernelName, 4> kernels{
      {KINTSUGI_FINISH("finish_native_f32"), KINTSUGI_FINISH("finish_native_f64"),
       KINTSUGI_FINISH("finish_native_c32"), KINTSUGI_FINISH("finish_native_c64")}};
#undef KINTSUGI_FINISH
  const bool in_place = sums.data == tile.c.data;
  FinishTask task = finish_task(tile, in_place);
  std::int64_t blocks = task.tiles;
  const bool wants_magnitudes = in_place && can_find_magnitudes(tile, scratch_bytes) &&
                                (test == NativeTest::operands || reads_sums_first(tile, task));
  if (wants_magnitudes && find_magnitudes(queue, tile, test, scratch, task)) {
    // If the magnitudes prove all sums, thread blocks only read the records and exit, so there should be few
    // of them: as many as the device holds at once.
    constexpr std::int64_t blocks_per_sm = 2;
    blocks = std::min(blocks, blocks_per_sm * sm_count());
  }
  for_each_launch(tile.items, [&](std::int64_t first, std::int64_t items) {
    DeviceTile launch_tile = tile;
    launch_tile.item += first;
    launch_tile.a.item += first;
    launch_tile.b.item += first;
    DeviceMatrix launch_sums = sums;
    if (!in_place)  // else the kernel finds the sums of an item where it finds C
      launch_sums.data = static_cast<const std::byte*>(sums.data) +
                         static_cast<std::size_t>(first * sums.batch_stride) * element_bytes(sums.type);
    launch(kernels[static_cast<std::size_t>(tile.c.type)], {blocks, items}, native_threads, 0, queue,
           launch_tile, launch_sums, task);
  });
}

}  // namespace kintsugi::core::cuda
