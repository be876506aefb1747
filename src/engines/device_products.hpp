// Products and recombination on a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/device_operands.hpp"
#include "engines/device_selection.hpp"
#include "schedule/schedule.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Tile of C: `rows` x `columns` elements from (first_row, first_column) on.
struct DeviceTile {
  DeviceSide a;
  DeviceSide b;
  DeviceMatrix c;
  std::int64_t item = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;  // first column of C
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // columns of C
  DeviceScalars scalars;
  DeviceCondition condition;
  // Number of batch items from `item` on, each with its own selection. It is 1 except for
  // multiply_unsliced() and select_or_multiply_unsliced(). multiply_fused() reads DeviceFusedProduct::items
  // instead.
  std::int64_t items = 1;
};

// Product of the vendor library in BLAS's terms: column-major.
struct DeviceBlasProduct {
  ElementType type = ElementType::f32;
  int op_a = 0, op_b = 0;  // 0: as it is, 1: transposed, 2: conjugated and transposed
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool pointers = false;  // a, b and c are arrays of pointers, in device memory
  std::int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;
  std::int64_t batch_count = 1;
  DeviceScalars scalars;
  std::size_t scratch_bytes = 0;
  bool keeps_contract = false;  // alpha must multiply sums, as the bound of native products requires
};

// Products of slices of some batch items, over all of k. The same kernel turns the sums into elements of C.
struct DeviceFusedProduct {
  const Schedule* schedule = nullptr;
  Slices a;  // slices of the first item; those of all items are contiguous
  Slices b;
  bool shares_a = false;  // all items have the same slices and ranges
  bool shares_b = false;
  DeviceTile tile;  // tile of the first item; selections and ranges of all items are contiguous
  std::int64_t items = 1;
  bool has_cleared_counters = false;  // the product need not clear its counters (DeviceSplit::cleared)
};

// Slices with exponents per tile (MixPert) whose tiles the report counts. They belong to whole operands, or
// to the vectors of one block of C.
struct DeviceTileCount {
  Slices a;  // slices of the first item; data = nullptr: they have been counted already
  Slices b;
  bool shares_a = false;  // all items have the same slices, which are counted once per item
  bool shares_b = false;
  std::int64_t items = 1;
  DeviceCondition condition;
};

}  // namespace kintsugi::core
