#include "planner/candidates/host.hpp"

#include <algorithm>

#include "planner/candidates/candidates.hpp"

namespace kintsugi::core {

namespace {

// Returns the native candidate. Under the policy emulate it has a fixed order. Native products of
// double-double numbers, and all native products of the reference engine, always have a fixed order.
Candidate native_candidate(const Plan& plan) {
  Candidate candidate{.acceptance = accepts_all};
  candidate.fixed_order = plan.request.policy == Policy::emulate || plan.problem.type == OperandType::dd ||
                          plan.engine->native_order_is_fixed();
  return candidate;
}

}  // namespace

// Compares only the times of products; splits and recombination take little time. On one core of a Zen 4 at n
// = 1024, FP64 by 16 residues reached 8.7 GFLOP/s (lab/results/log), so 30 residues are expected to reach
// about 4.6. The native double-double loop reached 4.3.
bool beats_native_double_double(const Plan& plan, const std::vector<Candidate>& chain) {
  constexpr std::int64_t min_size = 1024;
  const Problem& problem = plan.problem;
  if (problem.type != OperandType::dd || std::min({problem.m, problem.n, problem.k}) < min_size) return false;
  return relative_cost(*plan.engine, chain.front().program) < plan.engine->native_double_double_time_ratio();
}

std::vector<Candidate> host_candidates(const Plan& plan) {
  const bool native_follows = native_meets(plan.contract, plan.problem);
  const Policy policy = plan.request.policy;
  std::vector<Candidate> chain;
  if (policy != Policy::native)
    chain = proved_emulations(plan, {.include_slower = policy == Policy::emulate || !native_follows,
                                     .native_follows = native_follows});
  if (native_follows) chain.push_back(native_candidate(plan));
  return chain;
}

}  // namespace kintsugi::core
