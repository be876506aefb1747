#include "execute/device/candidates/native.hpp"

#include <optional>

#include "engines/device_engine.hpp"

namespace kintsugi::core {

namespace {

// Returns the op of DeviceBlasProduct for an operand: 0, 1, 2 for N, T, C of BLAS. Returns nothing for a
// conjugate without transposition, which BLAS lacks. `transposed`: the operand is stored transposed.
std::optional<int> blas_op(const DeviceMatrix& matrix, bool transposed) {
  const bool conjugated = matrix.complex() && matrix.conjugated;
  if (!transposed) return conjugated ? std::nullopt : std::optional(0);
  return conjugated ? 2 : 1;
}

// Multiplies by the vendor library. A row-major C is computed as the column-major C^T = B^T A^T. Returns
// false and does nothing if the library cannot compute the product, as for some prepared operands: a
// conjugate without transposition, and pointers combined with strides.
bool multiply_by_vendor(const DeviceNativeCall& call, std::byte* scratch) {
  const Problem& problem = call.plan.problem;
  const bool swaps = problem.layout == Layout::row_major;
  const DeviceMatrix& left = swaps ? call.b : call.a;
  const DeviceMatrix& right = swaps ? call.a : call.b;
  const OperandStorage& storage_left = swaps ? call.storage_b : call.storage_a;
  const OperandStorage& storage_right = swaps ? call.storage_a : call.storage_b;
  const auto op_a = blas_op(left, storage_left.along_k);
  const auto op_b = blas_op(right, !storage_right.along_k);
  if (!op_a || !op_b || left.pointers != call.c.pointers || right.pointers != call.c.pointers) return false;
  return call.plan.engine->device()->native(call.queue,
                                            {.type = call.c.type,
                                             .op_a = *op_a,
                                             .op_b = *op_b,
                                             .m = left.rows,
                                             .n = right.rows,
                                             .k = problem.k,
                                             .a = left.data,
                                             .b = right.data,
                                             .c = const_cast<void*>(call.c.data),
                                             .lda = storage_left.ld,
                                             .ldb = storage_right.ld,
                                             .ldc = problem.ldc,
                                             .pointers = call.c.pointers,
                                             .batch_stride_a = left.batch_stride,
                                             .batch_stride_b = right.batch_stride,
                                             .batch_stride_c = call.c.batch_stride,
                                             .batch_count = problem.batch_count,
                                             .scalars = call.scalars,
                                             .scratch_bytes = call.blocking.native_scratch_bytes,
                                             .keeps_contract = call.plan.contract.coefficient != 0},
                                            scratch);
}

}  // namespace

void multiply_natively(const DeviceNativeCall& call, Workspace workspace) {
  if (multiply_by_vendor(call, workspace.take(call.blocking.native_scratch_bytes))) return;
  call.plan.engine->device()->multiply_unsliced(call.queue, {.a = {.matrix = call.a},
                                                             .b = {.matrix = call.b},
                                                             .c = call.c,
                                                             .rows = call.c.rows,
                                                             .columns = call.c.columns,
                                                             .scalars = call.scalars,
                                                             .condition = {},
                                                             .items = call.plan.problem.batch_count});
}

}  // namespace kintsugi::core
