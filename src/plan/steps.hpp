// Steps of an execution that programs share.
#pragma once

#include <span>

#include "plan/execute.hpp"
#include "plan/operand.hpp"
#include "splits/split.hpp"

namespace kintsugi::core {

// One operand of one batch entry on its way through the steps.
template <class T>
struct SideOf {
  OperandView<T> view;  // vectors x k
  std::span<VectorRange> ranges;
  const Prepared::Entry* prepared = nullptr;
  const SplitRule* rule = nullptr;  // of the program that is run
  Slices slices{};                  // memory for one block
  std::span<const double> inner{};  // factors of the inner indices; empty: none
};

// The program that both sides are split for from now on.
template <class T>
void set_program(const Program& program, SideOf<T>& a, SideOf<T>& b) {
  a.rule = &program.split_a;
  b.rule = &program.split_b;
  for (VectorRange& range : a.ranges) set_scale(range, *a.rule);
  for (VectorRange& range : b.ranges) set_scale(range, *b.rule);
}

// Slices of vectors first...first + count - 1 of a side.
template <class T>
Slices split_block(const SideOf<T>& side, std::int64_t first, std::int64_t count, int threads) {
  if (side.prepared != nullptr && side.prepared->slices.data != nullptr && side.inner.empty() &&
      side.prepared->rule == *side.rule && side.prepared->slices.storage == side.slices.storage) {
    return side.prepared->slices.block(first, count);
  }
  Slices slices = side.slices;
  slices.vectors = count;
  split_operand(side.view.vectors(first, count), *side.rule, side.ranges.subspan(first, count), slices,
                threads, side.inner);
  return slices;
}

// Memory of a block's products: slices of both sides, sums, scratch.
struct BlockMemory {
  Accumulators sums;
  std::byte* scratch = nullptr;
};

template <class T>
BlockMemory take_block(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                       SideOf<T>& b, Workspace& workspace) {
  const auto take_slices = [&](const SplitRule& rule, std::int64_t vectors) {
    Slices slices = make_slices(*rule.format, plan.engine->slice_storage(rule.format->id), rule.slices,
                                vectors, plan.problem.products());
    slices.data = workspace.take(slices.bytes());
    return slices;
  };
  a.slices = take_slices(program.split_a, blocking.m);
  b.slices = take_slices(program.split_b, parts_of<T> * blocking.n);
  BlockMemory memory;
  memory.sums = make_accumulators(program.sum_type(plan.engine->reduces_sums()), blocking.m,
                                  parts_of<T> * blocking.n, program.schedule.sums());
  memory.sums.data = workspace.take(memory.sums.bytes());
  memory.scratch = workspace.take(plan.engine->scratch_bytes(program.schedule, program.format().id,
                                                             plan.problem.products(), plan.threads));
  return memory;
}

}  // namespace kintsugi::core
