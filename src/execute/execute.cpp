#include "execute/execute.hpp"

#include "arith/complex.hpp"
#include "arith/double_double.hpp"
#include "base/floating_environment.hpp"
#include "execute/device/device.hpp"
#include "execute/device/prepare.hpp"
#include "execute/host/operand.hpp"
#include "execute/host/steps.hpp"

namespace kintsugi::core {

namespace {

// Computes beta * C. beta = 1 leaves C bitwise unchanged.
template <class T>
void scale_result(const MatrixView<T>& c, T beta, RoundingMode rounding) {
  if (beta == T(1)) return;
  for (std::int64_t j = 0; j < c.columns; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i)
      c(i, j) = beta == T(0) ? T(0) : scaled_element(beta, c(i, j), rounding);
  }
}

}  // namespace

void check_workspace(const Plan& plan, const Operands& operands) {
  if (operands.workspace_size < plan.workspace_bytes) {
    fail(Status::workspace_too_small, "the workspace has {} bytes and the plan needs {}",
         operands.workspace_size, plan.workspace_bytes);
  }
  if (reinterpret_cast<std::uintptr_t>(operands.workspace) % workspace_alignment != 0) {
    fail(Status::invalid_argument, "the workspace's address {} is not a multiple of {}",
         fmt::ptr(operands.workspace), workspace_alignment);
  }
}

namespace {

void check_prepared(const Plan& plan, const Prepared* prepared, Side side) {
  if (prepared == nullptr) return;
  const Problem& problem = plan.problem;
  const char* name = side == Side::a ? "A" : "B";
  const std::int64_t vectors = side == Side::a ? problem.m : problem.n;
  const std::int64_t count = prepared->device != nullptr ? prepared->device->count
                                                         : static_cast<std::int64_t>(prepared->items.size());
  if (prepared->side != side) {
    fail(Status::invalid_argument, "an operand prepared as {} is given as {}", side == Side::a ? "B" : "A",
         name);
  }
  if ((prepared->device != nullptr) != (problem.memory == MemorySpace::device)) {
    fail(Status::invalid_argument,
         "{} was prepared in the {} memory and this problem's operands are in the {}", name,
         prepared->device != nullptr ? "device's" : "host's",
         prepared->device != nullptr ? "host's" : "device's");
  }
  if (prepared->type != problem.type || prepared->complex != problem.complex ||
      prepared->vectors != vectors || prepared->k != problem.k ||
      (count != 1 && count != problem.batch_count)) {
    fail(Status::invalid_argument,
         "{} was prepared with {} elements, {} vectors of length {} in a batch of {}; this problem has {} "
         "elements, {} of length {} in a batch of {}",
         name, element_type_name(prepared->type, prepared->complex), prepared->vectors, prepared->k, count,
         element_type_name(problem.type, problem.complex), vectors, problem.k, problem.batch_count);
  }
  if (prepared->device != nullptr && prepared->device->matrix.pointers && count != problem.batch_count) {
    fail(Status::invalid_argument,
         "{} was prepared from a table of one pointer, which cannot serve a batch of {}: prepare it by "
         "strides",
         name, problem.batch_count);
  }
}

template <class T>
void scale_results(const Plan& plan, const Operands& operands) {
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item) {
    scale_result(view_of_c<T>(plan.problem, operands.c, item), scalar<T>(operands.beta), plan.rounding);
  }
}

}  // namespace

void execute(const Plan& plan, const Operands& operands, Report& report) {
  const Problem& problem = plan.problem;
  report.blocking = plan.blocking;
  check_prepared(plan, operands.prepared_a, Side::a);
  check_prepared(plan, operands.prepared_b, Side::b);
  if (problem.memory == MemorySpace::device) return execute_on_device(plan, operands, report);
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return;
  if (problem.k == 0 || operands.alpha.is_zero()) {
    report.items_scaled = problem.batch_count;
    clear_product_exceptions();
    with_element_type(problem, [&]<class T>() { scale_results<T>(plan, operands); });
    report.exceptions |= raised_product_exceptions();
    return;
  }
  if (plan.is_offloaded()) return offload(plan, operands, report);
  if (plan.engine->is_device()) return stage(plan, operands, report);
  execute_on_host(plan, operands, report);
}

}  // namespace kintsugi::core
