// Steps of an execution that several programs use.
#pragma once

#include <cstdint>
#include <span>

#include "execute/blocks.hpp"
#include "execute/execute.hpp"
#include "execute/host/operand.hpp"
#include "planner/workspace/host.hpp"
#include "split/split.hpp"

namespace kintsugi::core {

// One operand of one batch item, with its ranges and slices.
template <class T>
struct SideOf {
  OperandView<T> view;  // vectors x k
  std::span<VectorRange> ranges;
  const Prepared::Item* prepared = nullptr;
  const SplitRule* rule = nullptr;          // split rule of the current program (set_program())
  Slices slices{};                          // memory for slices of one block
  std::span<const double> inner_factors{};  // factors of the inner indices; empty: none
};

// Sets the scales of splits into words (int52): the largest magnitude of each vector becomes less than
// 2^(top_exponent + 1), even after rounding up.
inline void set_scales_as_words(std::span<VectorRange> ranges, const SplitRule& rule) {
  for (VectorRange& range : ranges) {
    if ((range.flags & VectorRange::all_zero) == 0) range.scale = rule.top_exponent - range.raised;
  }
}

// Sets the program for which both sides will be split, with the scales of its vectors.
template <class T>
void set_program(const Program& program, SideOf<T>& a, SideOf<T>& b) {
  a.rule = &program.split_a;
  b.rule = &program.split_b;
  set_scales(a.ranges, *a.rule);
  set_scales(b.ranges, *b.rule);
  if (!program.scales_as_words) return;
  set_scales_as_words(a.ranges, *a.rule);
  set_scales_as_words(b.ranges, *b.rule);
}

// True if slices by the rule `available` can be used as slices by the rule `wanted`. The rules must be equal,
// or both must be rules for residues of real elements that differ only in the number of moduli, and
// `available` must have more moduli.
inline bool can_replace(const SplitRule& available, const SplitRule& wanted) {
  SplitRule shortened = available;
  const bool is_real_residues = wanted.kind == SplitKind::residues && wanted.complex_basis.empty();
  if (is_real_residues && wanted.scales == ScaleRule::exponent && wanted.slices <= available.slices) {
    shortened.slices = wanted.slices;
    shortened.sum_bits = wanted.sum_bits;
  }
  return shortened == wanted;
}

// Returns the slices of consecutive rows of op(A) or columns of op(B): prepared slices if they can be used,
// else new slices in the memory of side.slices. A complex column has two vectors in the view; in the slices
// it has one or two.
template <class T>
Slices split_vectors(const SideOf<T>& side, const Interval& rows_or_columns, int threads) {
  const auto [first, count] = rows_or_columns;
  const std::int64_t slice_vectors = slice_vectors_each(side.view, *side.rule);
  if (side.prepared != nullptr && side.prepared->slices.data != nullptr && side.inner_factors.empty() &&
      can_replace(side.prepared->rule, *side.rule) && side.prepared->slices.storage == side.slices.storage) {
    Slices slices = side.prepared->slices.block(slice_vectors * first, slice_vectors * count);
    slices.count = side.rule->slices;
    return slices;
  }
  Slices slices = side.slices;
  slices.vectors = slice_vectors * count;
  const std::int64_t view_vectors = side.view.rows / elements_of(side.view).rows;
  split_operand(side.view.vectors(view_vectors * first, view_vectors * count), *side.rule,
                side.ranges.subspan(view_vectors * first, view_vectors * count), slices, threads,
                side.inner_factors);
  return slices;
}

// Takes the memory of a block from the workspace, and assigns both sides the memory of their slices.
template <class T>
BlockMemory take_block(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                       SideOf<T>& b, Workspace& workspace) {
  const BlockMemory memory = lay_out_block(plan, program, blocking, workspace);
  a.slices = memory.a;
  b.slices = memory.b;
  return memory;
}

}  // namespace kintsugi::core
