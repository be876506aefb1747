#include "planner/workspace/device_native.hpp"

#include <algorithm>

#include "base/memory.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

namespace {

constexpr std::size_t most_sum_bytes = std::size_t{64} << 20;

}  // namespace

bool checks_native_sums(const Plan& plan) {
  constexpr std::int64_t long_enough = 2048;
  constexpr std::size_t cached_bytes = std::size_t{8} << 20;
  const Problem& problem = plan.problem;
  if (plan.contract.coefficient == 0 || problem.batch_kind == BatchKind::pointers) return false;
  const std::size_t bytes = array_bytes(problem.m, problem.n, element_bytes(entry_type(problem)));
  return problem.k >= long_enough || bytes <= cached_bytes / static_cast<std::size_t>(problem.batch_count);
}

std::size_t most_native_sum_bytes(const Plan& plan) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0 || !checks_native_sums(plan)) return 0;
  const std::size_t element = element_bytes(entry_type(problem));
  const std::size_t columns =
      static_cast<std::size_t>(problem.n) * static_cast<std::size_t>(problem.batch_count);
  const std::size_t column_bytes = static_cast<std::size_t>(problem.m) * element;
  return aligned_size(column_bytes * std::min(columns, most_sum_bytes / column_bytes));
}

}  // namespace kintsugi::core
