#include "planner/candidates/reproducible.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "arith/residue/residue.hpp"
#include "base/status.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/candidates/checked.hpp"
#include "schemes/bound.hpp"
#include "schemes/int52.hpp"
#include "schemes/ozaki2.hpp"

namespace kintsugi::core {

namespace {

constexpr SplitRule grid = schemes::int52.program.split_a;
constexpr int grid_bits = grid.top_exponent + 1;

void check_request(const Plan& plan) {
  const std::string& scheme = plan.request.scheme;
  if (plan.engine->device() != nullptr) {
    fail(Status::not_supported,
         "engine {} does not compute reproducible products; the engines reference and cpu do",
         plan.engine->name());
  }
  if (plan.request.policy == Policy::native) {
    fail(Status::contract_unreachable,
         "accuracy \"reproducible\" and policy \"native\" contradict each other: the bits of native products "
         "depend on engine and threads");
  }
  if (!scheme.empty() && scheme != schemes::int52.name && scheme != schemes::ozaki2.name) {
    fail(
        Status::contract_unreachable,
        "scheme = \"{}\" and accuracy = \"reproducible\" contradict each other; the schemes int52 and ozaki2 "
        "multiply on its grid",
        scheme);
  }
}

// Returns the largest integer e with 2^e < limit.
int exponent_below(double limit) {
  const int exponent = std::ilogb(limit);
  return std::ldexp(1.0, exponent) < limit ? exponent : exponent - 1;
}

// Returns the acceptance by exponents, which proves the contract as follows. L_i is the largest exponent of
// row i, so that |a_ip| < 2^(L_i + 1); L_j is that of column j. Row i has the grid's unit u_i <= 2^(1 - top +
// L_i), since the scale is that of an exponent which is at most one higher; column j has v_j.
//
// The rounded operands' product of a pair of non-zero elements differs from the pair's by at most
//
//   u_i / 2 |b_pj| + v_j / 2 |a_ip| + u_i v_j / 4.
//
// - Mean depth: all pairs together lose less than pairs * 2^(2 - top + L_i + L_j) (1 + 2^-top), and |A||B| is
//   at least pairs * 2^(L_i + L_j - depth) (are_within_depth()).
// - Dynamic range: an element is at least 2^-range of its vector's largest, so that every pair loses at most
//   2^(1 - top + range) (1 + 2^-top) |a_ip||b_pj|.
//
// The last rounding adds u. Coefficients are integers times u, so that a strict comparison without the factor
// 1 + 2^-top is also true with it.
Acceptance acceptance_of(const Plan& plan) {
  const double allowed = plan.contract.coefficient - unit_roundoff(plan.problem.type);
  Acceptance acceptance;
  acceptance.dynamic_range = exponent_below(allowed) + grid.top_exponent - 1;
  acceptance.mean_depth = exponent_below(allowed) + grid.top_exponent - 2;
  return acceptance;
}

// Returns the candidate by residues of as many moduli as hold sums of k products of the grid's integers;
// nothing if even all moduli do not.
std::optional<Candidate> by_residues(const Plan& plan) {
  const auto k = static_cast<std::uint64_t>(std::max<std::int64_t>(plan.problem.products(), 1));
  const int bits = 2 * grid_bits + static_cast<int>(std::bit_width(k - 1));
  int count = 2;
  while (count < max_moduli && residue_bits(count) < bits) ++count;
  if (residue_bits(count) < bits) return std::nullopt;
  auto candidate = offered(plan, ozaki2_variant(count, ScaleRule::exponent));
  if (!candidate) return std::nullopt;
  candidate->program.split_a.top_exponent = candidate->program.split_b.top_exponent = grid.top_exponent;
  candidate->program.scales_as_words = true;
  return candidate;
}

// Rate of the engine cpu's kernels of AVX-512 IFMA. They are faster than residues even with AMX, whose rate
// does not count the reduction of every sum modulo 15 numbers: at n = 2048 words have 0.44 of DGEMM's rate
// and residues 0.31 (one core of a Xeon with both).
constexpr double rate_of_fast_words = 0.15;

std::optional<Candidate> grid_candidate(const Plan& plan) {
  const std::string& scheme = plan.request.scheme;
  auto words = scheme == schemes::ozaki2.name ? std::nullopt : offered(plan, schemes::int52);
  auto residues = scheme == schemes::int52.name ? std::nullopt : by_residues(plan);
  if (!words || !residues) return words ? words : residues;
  const bool has_fast_words = plan.engine->relative_rate(grid.format->id) >= rate_of_fast_words;
  const bool takes_words = has_fast_words || relative_cost(*plan.engine, words->program) <=
                                                 relative_cost(*plan.engine, residues->program);
  return takes_words ? words : residues;
}

// Returns the candidates of `exact`, at most one less than a plan may have. All give the same bits, so that
// one may be left out: the third, which has one modulus more than the second.
std::vector<Candidate> exact_candidates(const Plan& plan) {
  Plan exact_plan = plan;
  exact_plan.contract = {.accuracy = {Accuracy::Kind::exact}};
  std::vector<Candidate> chain = checked_emulations(exact_plan);
  if (chain.size() == Plan::max_candidates) chain.erase(chain.begin() + 2);
  return chain;
}

}  // namespace

std::vector<Candidate> reproducible_candidates(const Plan& plan) {
  check_request(plan);
  std::vector<Candidate> chain = exact_candidates(plan);
  if (plan.problem.type == OperandType::dd) return chain;
  const auto candidate = grid_candidate(plan);
  if (!candidate) {
    fail(Status::not_supported, "engine {} does not multiply reproducibly by scheme {}", plan.engine->name(),
         plan.request.scheme.empty() ? "int52 or ozaki2" : plan.request.scheme);
  }
  chain.insert(chain.begin(), *candidate);
  chain.front().acceptance = acceptance_of(plan);
  return chain;
}

}  // namespace kintsugi::core
