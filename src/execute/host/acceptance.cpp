#include "execute/host/acceptance.hpp"

#include <algorithm>
#include <cstdint>

#include "base/status.hpp"
#include "planner/steps.hpp"
#include "recombine/recombine.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

bool accepts(const Plan& plan, const Candidate& candidate, const RangeSummary& a, const RangeSummary& b,
             bool proved_by_norms) {
  const std::int64_t k = plan.problem.products();
  if (!accepts(candidate.acceptance, a, b, k, proved_by_norms)) return false;
  return candidate.scheme == nullptr || candidate.acceptance.any_range() ||
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
    : plan_(plan), rows_(memory.rows), columns_(memory.columns) {
  std::copy(ranges.rows.begin(), ranges.rows.end(), memory.rows.begin());
  std::copy(ranges.columns.begin(), ranges.columns.end(), memory.columns.begin());
}

bool GridElements::accepts(std::int64_t row, std::int64_t column) const {
  const auto parts = static_cast<std::size_t>(plan_.problem.parts());
  return core::accepts(plan_, plan_.candidates.front(),
                       summarize(rows_.subspan(static_cast<std::size_t>(row), 1)),
                       summarize(columns_.subspan(parts * static_cast<std::size_t>(column), parts)));
}

namespace {

// Returns a summary that is accepted if any of these vectors is accepted.
RangeSummary best_of(std::span<const VectorRange> ranges) {
  RangeSummary best = summarize(ranges.first(1));
  for (const VectorRange& range : ranges) {
    const RangeSummary summary = summarize({&range, 1});
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

void open_refused_elements(const GridElements* grid, const ResultBlock& block, std::uint8_t* states) {
  for (std::int64_t j = 0; j < block.columns; ++j) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const bool is_done = grid != nullptr && grid->accepts(block.row + i, block.column + j);
      states[i + j * block.rows] = is_done ? ElementCheck::closed : ElementCheck::open;
    }
  }
}

const std::uint8_t* mark_refused_elements(const Plan& plan, const GridElements* grid, Workspace& workspace) {
  if (grid == nullptr) return nullptr;
  const ResultBlock whole{0, 0, plan.problem.m, plan.problem.n};
  std::uint8_t* const states = lay_out_element_states(plan, workspace);
  open_refused_elements(grid, whole, states);
  return states;
}

}  // namespace kintsugi::core
