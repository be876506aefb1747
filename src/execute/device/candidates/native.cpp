#include "execute/device/candidates/native.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <utility>

#include "engines/device_engine.hpp"
#include "planner/workspace/native_sums.hpp"

namespace kintsugi::core {

namespace {

// Columns first_column, first_column + 1, ... of C in the batch items first_item, first_item + 1, ...
struct ColumnPanel {
  std::int64_t first_item;
  std::int64_t items;
  std::int64_t first_column;
  std::int64_t columns;
};

// Returns the op of DeviceBlasProduct for an operand: 0, 1, 2 for N, T, C of BLAS. Returns nothing for a
// conjugate without transposition, which BLAS lacks. `transposed`: the operand is stored transposed.
std::optional<int> blas_op(const DeviceMatrix& matrix, bool transposed) {
  const bool conjugated = matrix.complex() && matrix.conjugated;
  if (!transposed) return conjugated ? std::nullopt : std::optional(0);
  return conjugated ? 2 : 1;
}

// Returns the matrix from batch item `item` and vector `vector` on.
DeviceMatrix from_item_and_vector(DeviceMatrix matrix, std::int64_t item, std::int64_t vector) {
  const std::int64_t elements = item * matrix.batch_stride + vector * matrix.row_stride;
  if (elements != 0) {
    matrix.data = static_cast<const std::byte*>(matrix.data) +
                  elements * static_cast<std::int64_t>(element_bytes(matrix.type));
  }
  return matrix;
}

class NativeProducts {
 public:
  NativeProducts(const DeviceNativeCall& call, Workspace workspace)
      : call_(call), engine_(*call.plan.engine->device()),
        scratch_(workspace.take(call.blocking.native_scratch_bytes)),
        sums_(workspace.take(call.blocking.native_sum_bytes)) {}

  void multiply() const {
    const DeviceScalars& scalars = call_.scalars;
    const bool has_contract = call_.plan.contract.coefficient != 0;
    const bool may_add_c = scalars.on_device() || scalars.beta != 0.0;
    const bool has_tiny_alpha = !scalars.on_device() && has_contract && is_subnormal(scalars.alpha);
    // True if sums are stored in the workspace, and a kernel of Kintsugi applies alpha and beta.
    const bool has_sums = may_add_c || has_tiny_alpha;
    const NativeWay way = has_contract ? native_way(call_.plan, has_sums) : NativeWay::vendor_sums;
    if (way == NativeWay::own_kernel) {
      multiply_by_own_kernel(whole());
    } else if (has_contract && has_sums) {
      multiply_in_panels();
    } else if (!multiply_by_vendor(whole(), call_.c, scalars)) {
      multiply_by_own_kernel(whole());
    } else if (has_contract) {
      const NativeTest test = way == NativeWay::vendor_operands ? NativeTest::operands : NativeTest::sums;
      engine_.finish_native(call_.queue, tile_of(whole()), call_.c, test, scratch_,
                            call_.blocking.native_scratch_bytes);
    }
  }

 private:
  // True if a part of alpha is subnormal. Kernels of cuBLAS may flush it to zero.
  bool is_subnormal(const std::complex<double>& alpha) const {
    const bool single = call_.c.type == ElementType::f32 || call_.c.type == ElementType::c32;
    const double least =
        single ? double{std::numeric_limits<float>::min()} : std::numeric_limits<double>::min();
    const auto is_below = [&](double x) { return x != 0 && std::abs(x) < least; };
    return is_below(alpha.real()) || is_below(alpha.imag());
  }
  ColumnPanel whole() const { return {0, call_.plan.problem.batch_count, 0, call_.c.columns}; }
  bool swaps_operands() const { return call_.plan.problem.layout == Layout::row_major; }

  // Multiplies panel after panel. A panel has as many whole batch items as the workspace can hold sums for,
  // or if it cannot hold one item, as many columns of one item.
  void multiply_in_panels() const {
    const auto elements_of_workspace =
        static_cast<std::int64_t>(call_.blocking.native_sum_bytes / element_bytes(call_.c.type));
    const std::int64_t columns = std::min(elements_of_workspace / call_.c.rows, call_.c.columns);
    if (columns == 0) return multiply_by_own_kernel(whole());
    const std::int64_t batch_count = call_.plan.problem.batch_count;
    const std::int64_t items =
        std::clamp<std::int64_t>(elements_of_workspace / (call_.c.rows * call_.c.columns), 1, batch_count);
    for (std::int64_t item = 0; item < batch_count; item += items) {
      for (std::int64_t j = 0; j < call_.c.columns; j += columns) {
        const ColumnPanel panel{item, std::min(items, batch_count - item), j,
                                std::min(columns, call_.c.columns - j)};
        const DeviceMatrix sums = sums_of(panel);
        if (multiply_by_vendor(panel, sums, {})) {
          constexpr std::byte* no_scratch = nullptr;  // every sum is tested, as it is added to C
          engine_.finish_native(call_.queue, tile_of(panel), sums, NativeTest::sums, no_scratch, 0);
        } else {
          multiply_by_own_kernel(panel);
        }
      }
    }
  }

  // Returns the matrix of a panel's sums, in the workspace, in C's layout without gaps.
  DeviceMatrix sums_of(const ColumnPanel& panel) const {
    DeviceMatrix sums = call_.c;
    sums.data = sums_;
    sums.batch_stride = call_.c.rows * panel.columns;
    sums.columns = panel.columns;
    sums.row_stride = swaps_operands() ? panel.columns : 1;
    sums.column_stride = swaps_operands() ? 1 : call_.c.rows;
    return sums;
  }

  void multiply_by_own_kernel(const ColumnPanel& panel) const {
    engine_.multiply_unsliced(call_.queue, tile_of(panel));
  }

  DeviceTile tile_of(const ColumnPanel& panel) const {
    return {.a = {.matrix = call_.a, .item = panel.first_item},
            .b = {.matrix = call_.b, .item = panel.first_item},
            .c = call_.c,
            .item = panel.first_item,
            .first_column = panel.first_column,
            .rows = call_.c.rows,
            .columns = panel.columns,
            .scalars = call_.scalars,
            .condition = {},
            .items = panel.items};
  }

  // Multiplies into `result`, which has the panel's size, or into C if the panel is all of C. A row-major C
  // is computed as the column-major C^T = B^T A^T. Returns false and does nothing if cuBLAS needs more
  // scratch or has no such product. cuBLAS has no product for some prepared operands: a conjugate without
  // transposition, and pointers combined with strides.
  bool multiply_by_vendor(const ColumnPanel& panel, const DeviceMatrix& result,
                          const DeviceScalars& scalars) const {
    const DeviceMatrix a = from_item_and_vector(call_.a, panel.first_item, 0);
    DeviceMatrix b = from_item_and_vector(call_.b, panel.first_item, panel.first_column);
    b.rows = panel.columns;
    const bool swap = swaps_operands();
    const DeviceMatrix& left = swap ? b : a;
    const DeviceMatrix& right = swap ? a : b;
    const OperandStorage& storage_left = swap ? call_.storage_b : call_.storage_a;
    const OperandStorage& storage_right = swap ? call_.storage_a : call_.storage_b;
    const auto op_a = blas_op(left, storage_left.along_k);
    const auto op_b = blas_op(right, !storage_right.along_k);
    if (!op_a || !op_b || left.pointers != result.pointers || right.pointers != result.pointers) return false;
    const bool in_place = result.data == call_.c.data;
    return engine_.native(
        call_.queue,
        {.type = result.type,
         .op_a = *op_a,
         .op_b = *op_b,
         .m = left.rows,
         .n = right.rows,
         .k = call_.plan.problem.k,
         .a = left.data,
         .b = right.data,
         .c = const_cast<void*>(result.data),
         .lda = storage_left.ld,
         .ldb = storage_right.ld,
         .ldc = in_place ? call_.plan.problem.ldc : std::max(result.row_stride, result.column_stride),
         .pointers = result.pointers,
         .batch_stride_a = left.batch_stride,
         .batch_stride_b = right.batch_stride,
         .batch_stride_c = result.batch_stride,
         .batch_count = panel.items,
         .scalars = scalars,
         .scratch_bytes = call_.blocking.native_scratch_bytes},
        scratch_);
  }

  const DeviceNativeCall& call_;
  const DeviceEngine& engine_;
  std::byte* scratch_;
  std::byte* sums_;
};

}  // namespace

void multiply_natively(const DeviceNativeCall& call, Workspace workspace) {
  NativeProducts(call, workspace).multiply();
}

}  // namespace kintsugi::core
