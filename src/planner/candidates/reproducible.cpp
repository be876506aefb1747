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
  if (plan.engine->is_device()) {
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

// Returns the acceptance by exponents. It proves the contract as follows. L_i is the largest exponent of row
// i, so |a_ip| < 2^(L_i + 1). The unit of row i on the grid is u_i <= 2^(1 - top + L_i), since the scale
// belongs to an exponent that is at most L_i + 1. L_j and v_j are the same for column j.
//
// The product of two rounded non-zero elements differs from the product of the elements by at most
//
//   u_i / 2 |b_pj| + v_j / 2 |a_ip| + u_i v_j / 4.
//
// - Mean depth: the sum over `pairs` such products loses less than pairs * 2^(2 - top + L_i + L_j) (1 +
//   2^-top), and |A||B| is at least pairs * 2^(L_i + L_j - depth) (are_within_depth()).
// - Dynamic range: an element is at least 2^-range of the largest element of its vector, so each product
//   loses at most 2^(1 - top + range) (1 + 2^-top) |a_ip||b_pj|.
//
// The last rounding adds u. The factor 1 + 2^-top may be ignored: coefficients are integers times u, so a
// strict comparison has the same result with the factor.
Acceptance acceptance_of(const Plan& plan) {
  const double allowed = plan.contract.coefficient - unit_roundoff(plan.problem.type);
  Acceptance acceptance;
  acceptance.dynamic_range = exponent_below(allowed) + grid.top_exponent - 1;
  acceptance.mean_depth = exponent_below(allowed) + grid.top_exponent - 2;
  return acceptance;
}

// Returns the candidate by residues, with enough moduli to represent sums of k products of the grid's
// integers; nothing if all moduli are not enough.
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

// Relative rate of words that tells the kernels with AVX-512 IFMA from slower ones. Words multiplied with
// IFMA are faster than residues with AMX: 0.44 and 0.31 of DGEMM's rate at n = 2048 on one core of a Xeon
// with both. The relative costs do not show this, since the cost of residues does not contain the reduction
// of every sum modulo 15 numbers.
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

// Returns the candidates of `exact`. If a plan does not take all of them after the grid, the third is left
// out: it has just one modulus more than the second. All candidates give the same bits.
std::vector<Candidate> exact_candidates(const Plan& plan) {
  Plan exact_plan = plan;
  exact_plan.contract = {.accuracy = {Accuracy::Kind::exact}};
  std::vector<Candidate> chain = checked_emulations(exact_plan);
  constexpr std::size_t too_many = 5;
  if (chain.size() == too_many) chain.erase(chain.begin() + 2);
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
