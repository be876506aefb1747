#include "planner/device_call.hpp"

#include <utility>

#include "base/status.hpp"
#include "planner/memory.hpp"
#include "planner/steps.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

DeviceMatrix matrix_of(const Problem& problem, const void* data, Op op, std::int64_t rows,
                       std::int64_t columns, std::int64_t ld, std::int64_t stride) {
  const auto view = matrix_view<const char>(nullptr, problem.layout, op, rows, columns, ld);
  return {.data = data,
          .pointers = problem.batch_kind == BatchKind::pointers,
          .type = element_type(problem),
          .batch_stride = stride,
          .rows = rows,
          .columns = columns,
          .row_stride = view.row_stride,
          .column_stride = view.column_stride,
          .conjugated = op == Op::conjugate_transpose};
}

}  // namespace

DeviceMatrix device_operand(const Problem& problem, Side side, const void* data) {
  if (side == Side::a)
    return matrix_of(problem, data, problem.op_a, problem.m, problem.k, problem.lda, problem.stride_a);
  DeviceMatrix b =
      matrix_of(problem, data, problem.op_b, problem.k, problem.n, problem.ldb, problem.stride_b);
  // The vectors of an operand are its rows, so that op(B) is transposed.
  std::swap(b.rows, b.columns);
  std::swap(b.row_stride, b.column_stride);
  b.right = true;
  return b;
}

DeviceMatrix device_result(const Problem& problem, const void* data) {
  return matrix_of(problem, data, Op::none, problem.m, problem.n, problem.ldc, problem.stride_c);
}

OperandStorage operand_storage(const Problem& problem, Side side) {
  const bool is_a = side == Side::a;
  const bool transposed = (is_a ? problem.op_a : problem.op_b) != Op::none;
  const bool rows_contiguous = (problem.layout == Layout::row_major) != transposed;  // rows of op(A) or op(B)
  // k is the length of the rows of op(A) and of the columns of op(B).
  return {.along_k = is_a ? rows_contiguous : !rows_contiguous, .ld = is_a ? problem.lda : problem.ldb};
}

DeviceCandidates candidates_on_device(const Plan& plan) {
  DeviceCandidates result;
  result.count =
      static_cast<int>(plan.is_checked() ? product_candidates(plan).size() : plan.candidates.size());
  if (result.count > DeviceReport::max_candidates)
    fail(Status::internal, "the plan has {} candidates to select among; the device takes {}", result.count,
         DeviceReport::max_candidates);
  for (int c = 0; c < result.count; ++c)
    result.acceptances[c] = plan.candidates[static_cast<std::size_t>(c)].acceptance;
  result.coefficient = proved_coefficient(plan);
  const Candidate& first = plan.candidates.front();
  result.fits = first.scheme->fits_residuals();
  result.format = first.program.format();
  result.residual_exponent = first.program.split_a.residual_exponent;
  return result;
}

NormCandidates norm_candidates(const Plan& plan) {
  NormCandidates result;
  for (const Candidate& candidate : plan.candidates) {
    if (!candidate.acceptance.by_norms()) continue;
    if (result.count == NormCandidates::max_candidates)
      fail(Status::internal, "a plan has more than {} candidates by norms", result.count);
    result.acceptances[result.count++] = candidate.acceptance;
  }
  result.coefficient = proved_coefficient(plan);
  return result;
}

DeviceSplit device_split(const Plan& plan, const Candidate& candidate, Side side, const Blocking& blocking) {
  const bool is_a = side == Side::a;
  const Program& program = candidate.program;
  const DeviceBlockMemory memory = block_slices(plan, candidate, blocking);
  const std::int64_t vectors =
      is_a ? std::min(blocking.m, plan.problem.m)
           : vectors_per_column(plan, candidate) * std::min(blocking.n, plan.problem.n);
  DeviceSplit split{.side = {.matrix = device_operand(plan.problem, side, nullptr)},
                    .rule = is_a ? &program.split_a : &program.split_b,
                    .slices = is_a ? memory.a : memory.b};
  split.slices.vectors = vectors;
  return split;
}

DeviceShape fused_shape(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Program& program = candidate.program;
  return {.schedule = program.schedule,
          .format = program.format().id,
          .type = element_type(plan.problem),
          .m = std::min(blocking.m, plan.problem.m),
          .n = std::min(blocking.n, plan.problem.n),
          .k = plan.problem.k,
          .items = items_at_once(plan, blocking),
          .prepared_a = false,
          .prepared_b = false,
          .is_along_k_a = operand_storage(plan.problem, Side::a).along_k,
          .is_along_k_b = operand_storage(plan.problem, Side::b).along_k};
}

}  // namespace kintsugi::core
