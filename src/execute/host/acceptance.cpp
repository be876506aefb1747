#include "execute/host/acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/status.hpp"
#include "planner/steps.hpp"
#include "recombine/recombine.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

bool accepts(const Plan& plan, const Candidate& candidate, const RangeSummary& a, const RangeSummary& b,
             bool proved_by_norms) {
  const std::int64_t k = plan.problem.products();
  if (!accepts(candidate.acceptance, a, b, k, proved_by_norms)) return false;
  const bool is_named = candidate.acceptance.any_range() && !candidate.acceptance.by_norms();
  return candidate.scheme == nullptr || is_named ||
         !grid_can_overflow(candidate.program, plan.problem.type, a, b, k);
}

namespace {

// Calls visit(range, norm) for the vectors that count in the proof: those that are neither zero nor have
// special values.
template <class Visit>
void visit_norms(const OperandRanges& side, const Visit& visit) {
  for (std::size_t v = 0; v < side.ranges.size(); ++v) {
    if (side.ranges[v].flags == 0) visit(side.norms[v]);
  }
}

std::int64_t least_elements(const OperandRanges& side, std::int64_t length) {
  std::int64_t least = length;
  visit_norms(side, [&](const VectorNorm& norm) { least = std::min<std::int64_t>(least, norm.elements); });
  return least;
}

NormExtremes<1> extremes_of(const OperandRanges& side, const Acceptance& acceptance, const NormTerms& terms,
                            double coefficient) {
  NormExtremes<1> extremes;
  visit_norms(side, [&](const VectorNorm& norm) {
    const std::int32_t tops[1] = {norm_top(acceptance.norm_top_exponent, acceptance.norm_bits, norm.bits)};
    extremes.add(norm, tops, terms, coefficient);
  });
  return extremes;
}

// Proof for int8x6. Its integers are digits 2^16 a0 + 2^8 a1 + a2 in units of the grid g, and the products a1
// b2, a2 b1 and a2 b2 are left out. So beside the rounding to the grid
//
//   |AB - S|_ij loses at most (2^-9 + 2^-18) 2^32 k g_i g_j more.
//
// As for moduli, the bound alone would accept coarse splits for a large k. With random signs the products
// left out deviate by 2^-11 sqrt(2 k) / 3 2^32 g_i g_j, since digits are spread evenly over -128 ... 127.
// That must be at most what a native product deviates by, 0.15 u |a_i| |b_j| (docs/design/selection.md); the
// norms are at least sqrt(k) times the means.
bool prove_digits(const OperandRanges& a, const OperandRanges& b, const Acceptance& acceptance,
                  const NormTerms& terms, double coefficient) {
  const auto extremes = [&](const OperandRanges& side, double& least_mean) {
    NormExtremes<1> found;
    for (std::size_t v = 0; v < side.ranges.size(); ++v) {
      const VectorRange& range = side.ranges[v];
      if (range.flags != 0) continue;
      const std::int32_t raised = range.raised - range.largest;
      const std::int32_t tops[1] = {acceptance.norm_top_exponent - raised};
      found.add(side.norms[v], tops, terms, coefficient);
      least_mean = std::min(least_mean, side.norms[v].mean * power_of_two(-raised));
    }
    return found;
  };
  double least_a = std::numeric_limits<double>::infinity();
  double least_b = least_a;
  const NormExtremes<1> of_a = extremes(a, least_a);
  const NormExtremes<1> of_b = extremes(b, least_b);
  const double grid = power_of_two(norm_digits - acceptance.norm_top_exponent);
  const double typical = 0x1p-11 * std::sqrt(2.0) / 3 * 0x1p32 * grid * grid;
  const double native = 0.15 * unit_roundoff(OperandType::f32) * std::sqrt(static_cast<double>(terms.length));
  if (!(typical <= native * least_a * least_b) || terms.common <= 0) return false;
  const double grids = LogarithmAbove::value(of_a.grid[0]) + LogarithmAbove::value(of_b.grid[0]);
  const double left_out = norm_detail::power_above(grids) * (0x1p-9 + 0x1p-18) * 0x1p32 *
                          static_cast<double>(terms.length) / static_cast<double>(terms.common);
  return proves(of_a, of_b, 0, terms, coefficient - left_out * (1 + 0x1p-20));
}

}  // namespace

std::array<bool, Plan::max_candidates> prove_by_norms(const Plan& plan, const OperandRanges& a,
                                                      const OperandRanges& b) {
  std::array<bool, Plan::max_candidates> proved{};
  if (a.norms.empty()) return proved;
  const std::int64_t length = plan.problem.products();
  const NormTerms terms = NormTerms::of(length, least_elements(a, length), least_elements(b, length));
  const double coefficient = proved_coefficient(plan);
  for (std::size_t c = 0; c < plan.candidates.size(); ++c) {
    const Acceptance& acceptance = plan.candidates[c].acceptance;
    if (acceptance.by_norms() && plan.candidates[c].program.split_a.kind == SplitKind::grid_digits) {
      proved[c] = prove_digits(a, b, acceptance, terms, coefficient);
      continue;
    }
    proved[c] = acceptance.by_norms() &&
                proves(extremes_of(a, acceptance, terms, coefficient),
                       extremes_of(b, acceptance, terms, coefficient), 0, terms, coefficient);
  }
  return proved;
}

std::size_t select_candidate(const Plan& plan, const RangeSummary& a, const RangeSummary& b,
                             const std::array<bool, Plan::max_candidates>& proved_by_norms) {
  for (std::size_t r = 0; r < plan.candidates.size(); ++r) {
    if (accepts(plan, plan.candidates[r], a, b, proved_by_norms[r])) return r;
  }
  fail(Status::contract_unreachable,
       "rows of A span up to {} binades and reach 2^{}, columns of B {} and 2^{}; accuracy {} is proved for "
       "at most {} at k = {}, and the native product is not proved for it",
       a.dynamic_range, a.largest, b.dynamic_range, b.largest, plan.accuracy_text(),
       plan.candidates.back().acceptance.dynamic_range, plan.problem.k);
}

GridElements::GridElements(const Plan& plan, const RangeMemory& ranges, const RangeMemory& memory)
    : plan_(plan), rows_(memory.rows), columns_(memory.columns),
      acceptance_(plan.candidates.front().acceptance), parts_(plan.problem.parts()),
      length_(plan.problem.products()),
      any_can_overflow_(grid_can_overflow(plan.candidates.front().program, plan.problem.type,
                                          summarize(ranges.rows), summarize(ranges.columns), length_)) {
  std::copy(ranges.rows.begin(), ranges.rows.end(), memory.rows.begin());
  std::copy(ranges.columns.begin(), ranges.columns.end(), memory.columns.begin());
}

namespace {

// Returns a summary that is accepted if any of these vectors is accepted.
RangeSummary best_of(std::span<const VectorRange> ranges) {
  RangeSummary best = summary_of(ranges.front());
  for (const VectorRange& range : ranges) {
    const RangeSummary summary = summary_of(range);
    best.dynamic_range = std::min(best.dynamic_range, summary.dynamic_range);
    best.largest = std::min(best.largest, summary.largest);
    best.depth = std::min(best.depth, summary.depth);
    best.min_elements = std::max(best.min_elements, summary.min_elements);
  }
  return best;
}

}  // namespace

bool GridElements::accept_any() const {
  return core::accepts(plan_, plan_.candidates.front(), best_of(rows_), best_of(columns_));
}

void open_elements(const GridElements* grid, bool accepted, const ResultBlock& block, std::uint8_t* states) {
  for (std::int64_t j = 0; j < block.columns; ++j) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const bool is_accepted = grid != nullptr && grid->accepts(block.row + i, block.column + j);
      states[i + j * block.rows] = is_accepted == accepted ? ElementCheck::open : ElementCheck::closed;
    }
  }
}

const std::uint8_t* mark_elements(const Plan& plan, const GridElements* grid, bool accepted,
                                  Workspace& workspace) {
  if (grid == nullptr) return nullptr;
  const ResultBlock whole{0, 0, plan.problem.m, plan.problem.n};
  std::uint8_t* const states = lay_out_element_states(plan, workspace);
  open_elements(grid, accepted, whole, states);
  return states;
}

}  // namespace kintsugi::core
