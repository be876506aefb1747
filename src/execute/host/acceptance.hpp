// Acceptance of a batch item by a plan's candidates on the host, and of single elements of C.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/norm_proof.hpp"
#include "base/view.hpp"
#include "execute/blocks.hpp"
#include "planner/memory.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {

// True if the candidate's acceptance test passes. A candidate on a grid must also not be able to make a
// finite result infinite before the last rounding, unless the caller named the scheme.
bool accepts(const Plan& plan, const Candidate& candidate, const RangeSummary& a, const RangeSummary& b,
             bool proved_by_norms = false);

// Ranges of one operand's vectors, and their norms if they are known.
struct OperandRanges {
  std::span<const VectorRange> ranges;
  std::span<const VectorNorm> norms;
};

// Tells for each candidate by norms whether norms prove every element of the product, as the selector of a
// device does. False for other candidates.
std::array<bool, Plan::max_candidates> prove_by_norms(const Plan& plan, const OperandRanges& a,
                                                      const OperandRanges& b);

// Returns the index of the first candidate that accepts both sides. Fails with contract_unreachable if there
// is none.
std::size_t select_candidate(const Plan& plan, const RangeSummary& a, const RangeSummary& b,
                             const std::array<bool, Plan::max_candidates>& proved_by_norms);

// Tells which elements of C the grid of a reproducible product accepts. Only the ranges of an element's row
// of A and column of B decide on the element. The element's bits therefore do not depend on other rows and
// columns.
class GridElements {
 public:
  // Copies the ranges of rows and columns, which programs change, to `memory`.
  GridElements(const Plan& plan, const RangeMemory& ranges, const RangeMemory& memory);

  // `row` and `column`: indices in C.
  bool accepts(std::int64_t row, std::int64_t column) const {
    const RangeSummary a = summary_of(rows_[static_cast<std::size_t>(row)]);
    const RangeSummary b = summary_of(columns_[static_cast<std::size_t>(parts_ * column)]);
    return core::accepts(acceptance_, a, b, length_) &&
           (!any_can_overflow_ || core::accepts(plan_, plan_.candidates.front(), a, b));
  }

  // False if the grid certainly accepts no element. If the result is true and the grid accepts no element
  // nevertheless, a product is computed in vain.
  bool accept_any() const;

 private:
  const Plan& plan_;
  std::span<const VectorRange> rows_;
  std::span<const VectorRange> columns_;
  Acceptance acceptance_;
  std::int64_t parts_;
  std::int64_t length_;
  bool any_can_overflow_;  // false: only the acceptance decides on elements
};

// Saves the elements of a block of C that the grid does not accept, while the grid's program overwrites the
// block. Does nothing without a grid.
template <class T>
class RefusedElements {
 public:
  RefusedElements(const Plan& plan, const Blocking& blocking, const GridElements* grid, Workspace& workspace)
      : grid_(grid) {
    if (grid != nullptr) memory_ = reinterpret_cast<T*>(lay_out_refused_elements(plan, blocking, workspace));
  }

  void save(const ResultBlock& block, const MatrixView<T>& c) const {
    if (grid_ == nullptr) return;
    for (std::int64_t j = 0; j < block.columns; ++j) {
      for (std::int64_t i = 0; i < block.rows; ++i) memory_[i + j * block.rows] = c(i, j);
    }
  }
  void restore(const ResultBlock& block, const MatrixView<T>& c) const {
    if (grid_ == nullptr) return;
    for (std::int64_t j = 0; j < block.columns; ++j) {
      for (std::int64_t i = 0; i < block.rows; ++i) {
        if (!grid_->accepts(block.row + i, block.column + j)) c(i, j) = memory_[i + j * block.rows];
      }
    }
  }

 private:
  const GridElements* grid_;
  T* memory_ = nullptr;
};

// Sets the states of a block's elements (ElementCheck::State): open if the grid's answer is `accepted`, else
// closed. Without a grid no element is accepted.
void open_elements(const GridElements* grid, bool accepted, const ResultBlock& block, std::uint8_t* states);

// Returns the states of all elements of C; the open ones must be computed: by the grid if `accepted`, else by
// the other candidates. Returns nullptr without a grid: all elements must be computed.
const std::uint8_t* mark_elements(const Plan& plan, const GridElements* grid, bool accepted,
                                  Workspace& workspace);

}  // namespace kintsugi::core
