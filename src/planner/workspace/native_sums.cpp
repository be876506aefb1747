#include "planner/workspace/native_sums.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

NativeWay native_way(const Plan& plan, bool adds_c) {
  const Problem& problem = plan.problem;
  // In a batch by pointers the vendor library would need an array of pointers to the sums, which is not made.
  if (adds_c && problem.batch_kind == BatchKind::pointers) return NativeWay::own_kernel;
  const auto times =
      plan.engine->device()->native_times({element_type(problem), problem.m, problem.n, problem.k,
                                           problem.batch_count, has_aligned_lines(problem)});
  if (!times) return NativeWay::vendor_sums;
  const bool own_is_faster =
      adds_c ? times->own_added < times->vendor_added : times->own < times->vendor_tested();
  if (own_is_faster) return NativeWay::own_kernel;
  return !adds_c && times->looks_at_operands() ? NativeWay::vendor_operands : NativeWay::vendor_sums;
}

std::size_t max_native_sum_bytes(const Plan& plan) {
  constexpr std::size_t max_sum_bytes = std::size_t{64} << 20;
  constexpr bool adds_c = true;
  const Problem& problem = plan.problem;
  const bool has_contract = plan.contract.coefficient != 0;
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0 || !has_contract ||
      native_way(plan, adds_c) == NativeWay::own_kernel)
    return 0;
  const std::size_t element = element_bytes(element_type(problem));
  const std::size_t columns =
      static_cast<std::size_t>(problem.n) * static_cast<std::size_t>(problem.batch_count);
  const std::size_t column_bytes = static_cast<std::size_t>(problem.m) * element;
  return aligned_size(column_bytes * std::min(columns, max_sum_bytes / column_bytes));
}

}  // namespace kintsugi::core
