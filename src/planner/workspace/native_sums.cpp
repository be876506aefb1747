#include "planner/workspace/native_sums.hpp"

#include <algorithm>

#include "engines/device.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

// Sums that are looked at go through memory once more, 16 bytes an FP64 element written and read again: some
// 12 % of a product with k = 2048 on an H200, and a launch where C lies in the L2 cache. Shorter products
// that update a larger C are cuBLAS's alone, as are arrays of pointers, of which there are none to the sums.
bool looks_at_sums(const Plan& plan) {
  constexpr std::int64_t long_enough = 2048;
  constexpr std::size_t cached_bytes = std::size_t{8} << 20;
  const Problem& problem = plan.problem;
  if (plan.contract.coefficient == 0 || problem.batch_kind == BatchKind::pointers) return false;
  const std::size_t bytes = array_bytes(problem.m, problem.n, element_bytes(element_type(problem)));
  return problem.k >= long_enough || bytes <= cached_bytes / static_cast<std::size_t>(problem.batch_count);
}

std::size_t most_native_sum_bytes(const Plan& plan) {
  constexpr std::size_t most_sum_bytes = std::size_t{64} << 20;
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0 || !looks_at_sums(plan)) return 0;
  const std::size_t element = element_bytes(element_type(problem));
  const std::size_t columns =
      static_cast<std::size_t>(problem.n) * static_cast<std::size_t>(problem.batch_count);
  const std::size_t column_bytes = static_cast<std::size_t>(problem.m) * element;
  return aligned_size(column_bytes * std::min(columns, most_sum_bytes / column_bytes));
}

}  // namespace kintsugi::core
