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

// One operand of one batch item, as the steps pass it on.
template <class T>
struct SideOf {
  OperandView<T> view;  // vectors x k
  std::span<VectorRange> ranges;
  const Prepared::Item* prepared = nullptr;
  const SplitRule* rule = nullptr;          // split rule of the program being run
  Slices slices{};                          // memory for slices of one block
  std::span<const double> inner_factors{};  // factors of the inner indices; empty: none
};

// Sets scales of vectors as for splits into integer words: the largest magnitude is scaled to 2^top_exponent,
// with room for rounding up.
inline void set_scales_as_words(std::span<VectorRange> ranges, const SplitRule& rule) {
  for (VectorRange& range : ranges) {
    if ((range.flags & VectorRange::all_zero) == 0) range.scale = rule.top_exponent - range.raised;
  }
}

// Sets the program for which both sides are split from now on.
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

// True if slices under the rule `available` can be used as those of `wanted`: the rules are the same or, for
// residues, the available slices have more moduli.
inline bool can_replace(const SplitRule& available, const SplitRule& wanted) {
  SplitRule shortened = available;
  const bool real_residues = wanted.kind == SplitKind::residues && wanted.complex_basis.empty();
  if (real_residues && wanted.scales == ScaleRule::exponent && wanted.slices <= available.slices) {
    shortened.slices = wanted.slices;
    shortened.sum_bits = wanted.sum_bits;
  }
  return shortened == wanted;
}

// Returns the slices of some rows of op(A) or columns of op(B): those of the prepared operand if they can be
// used, else new ones in side.slices. A complex column may have two vectors in the view, and one or two in
// the slices.
template <class T>
Slices split_part(const SideOf<T>& side, const Part& part, int threads) {
  const auto [first, count] = part;
  const std::int64_t vectors_each = slice_vectors_each(side.view, *side.rule);
  if (side.prepared != nullptr && side.prepared->slices.data != nullptr && side.inner_factors.empty() &&
      can_replace(side.prepared->rule, *side.rule) && side.prepared->slices.storage == side.slices.storage) {
    Slices slices = side.prepared->slices.block(vectors_each * first, vectors_each * count);
    slices.count = side.rule->slices;
    return slices;
  }
  Slices slices = side.slices;
  slices.vectors = vectors_each * count;
  const std::int64_t parts = side.view.rows / elements_of(side.view).rows;
  split_operand(side.view.vectors(parts * first, parts * count), *side.rule,
                side.ranges.subspan(parts * first, parts * count), slices, threads, side.inner_factors);
  return slices;
}

// Takes the memory of a block's products; both sides get their slices.
template <class T>
BlockMemory take_block(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                       SideOf<T>& b, Workspace& workspace) {
  const BlockMemory memory = lay_out_block(plan, program, blocking, workspace);
  a.slices = memory.a;
  b.slices = memory.b;
  return memory;
}

}  // namespace kintsugi::core
