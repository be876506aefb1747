#include "execute/device/candidates/fused.hpp"

#include <algorithm>
#include <vector>

#include "engines/device_engine.hpp"
#include "execute/blocks.hpp"
#include "execute/device/selection.hpp"
#include "execute/execute.hpp"
#include "planner/workspace/device.hpp"
#include "planner/workspace/fused.hpp"

namespace kintsugi::core {

namespace {

// True if all batch items have the same operand.
bool is_shared(const DeviceMatrix& matrix) { return !matrix.pointers && matrix.batch_stride == 0; }

// Consecutive batch items.
struct Items {
  std::int64_t first;
  std::int64_t count;
};

// One side of the call.
struct FusedSide {
  DeviceMatrix matrix;
  const DevicePrepared* prepared;
  bool shared;               // all items have the same slices
  VectorRange* ranges;       // ranges of this call, not of the prepared operand
  MergedSummary* summaries;  // summaries of the ranges, if they are many

  FusedSide(const DeviceMatrix& operand, const DevicePrepared* given, VectorRange* memory,
            MergedSummary* summary_memory)
      : matrix(operand), prepared(given),
        shared(given != nullptr ? given->items.size() == 1 : is_shared(operand)), ranges(memory),
        summaries(given != nullptr ? nullptr : summary_memory) {}

  const DevicePrepared::Item& prepared_item(std::int64_t item) const {
    return prepared->items[shared ? 0 : static_cast<std::size_t>(item)];
  }
  bool has(const SplitRule& rule) const { return prepared != nullptr && prepared->rule == rule; }
  // Returns the side with exponents and flags; its scales may be of any rule.
  DeviceSide at(const Items& items) const {
    DeviceSide side = with(prepared == nullptr ? ranges : prepared_item(items.first).ranges, items);
    side.summaries = prepared == nullptr ? summaries : prepared_item(items.first).summary;
    return side;
  }
  // Returns the side with the scales of that rule. An operand prepared by another rule keeps its own scales
  // for later calls.
  DeviceSide at(const Items& items, const SplitRule& rule) const {
    return with(has(rule) ? prepared_item(items.first).ranges : ranges, items);
  }

 private:
  DeviceSide with(VectorRange* vector_ranges, const Items& items) const {
    return {
        .matrix = matrix, .item = items.first, .ranges = vector_ranges, .items = shared ? 1 : items.count};
  }
};

const DevicePrepared* with_slices(const DevicePrepared* prepared) {
  return prepared == nullptr || prepared->items.empty() ? nullptr : prepared;
}

class FusedCall {
 public:
  FusedCall(const Plan& plan, const DeviceOperands& operands, const Queue& queue, const Blocking& blocking,
            Workspace workspace)
      : plan_(plan), engine_(*plan.engine->device()), queue_(queue), operands_(operands), blocking_(blocking),
        max_items_(std::min(items_at_once(plan, blocking), max_items_for(operands))),
        memory_(lay_out_fused(plan, blocking, workspace)),
        a_(operands.a, with_slices(operands.prepared_a), memory_.rows, memory_.row_summaries),
        b_(operands.b, with_slices(operands.prepared_b), memory_.columns, memory_.column_summaries) {}

  void multiply_all() const {
    for (std::int64_t first = 0; first < plan_.problem.batch_count; first += max_items_)
      multiply_together({first, std::min(max_items_, plan_.problem.batch_count - first)});
  }

 private:
  struct Conditions {
    bool conditional;   // the candidate's kernels exit early unless it was selected
    bool ranges_known;  // ranges were found before the split
  };

  // Largest number of items in a step. Kernels take the number of items from the operands
  // (DeviceSide::items), which is 1 where all items share one. So it is 1 if all items share both operands.
  std::int64_t max_items_for(const DeviceOperands& operands) const {
    const auto serves_all = [](const DeviceMatrix& matrix, const DevicePrepared* given) {
      const DevicePrepared* prepared = with_slices(given);
      return prepared != nullptr ? prepared->items.size() == 1 : is_shared(matrix);
    };
    const bool shares_both =
        serves_all(operands.a, operands.prepared_a) && serves_all(operands.b, operands.prepared_b);
    return shares_both ? 1 : plan_.problem.batch_count;
  }

  // Summarizes ranges of operands that have many vectors, before the selection reads the summaries.
  void summarize(const Items& items) const {
    for (const FusedSide* side : {&a_, &b_}) {
      if (side->summaries != nullptr) engine_.summarize(queue_, side->at(items), side->summaries);
    }
  }
  void select(const Items& items, bool overlaps_products) const {
    engine_.select(queue_, a_.at(items), b_.at(items), operands_.scalars, candidates_on_device(plan_),
                   memory_.selections, {operands_.report, begins_with_selection(plan_), overlaps_products});
  }

  void multiply_together(const Items& items) const {
    const bool conditional = plan_.candidates.size() > 1 || operands_.scalars.on_device();
    if (!conditional) {
      multiply_candidate(0, items, {.conditional = false, .ranges_known = false});
      if (operands_.report == nullptr) return;
      summarize(items);
      select(items, a_.summaries == nullptr && b_.summaries == nullptr);
      return;
    }
    const int next = begin_chain(items);
    for (int r = next; r < static_cast<int>(emulations(plan_).size()); ++r)
      multiply_candidate(r, items, {.conditional = true, .ranges_known = true});
    end_chain(items);
  }

  // True if products need not wait for the selection: the only emulation accepts most operands, and after any
  // other selection all of C is written anew.
  bool multiplies_before_selection() const {
    return emulations(plan_).size() == 1 && finds_ranges_while_splitting() && operands_.scalars.beta == 0.0;
  }
  ResultBlock all_of_c() const { return {0, 0, plan_.problem.m, plan_.problem.n}; }
  bool finds_ranges_while_splitting() const {
    return covers_all(plan_, blocking_) && !operands_.scalars.on_device();
  }
  // True if the first split clears the counters of the products: it always runs, and of one batch item only
  // the products of one candidate count.
  bool clears_counters(const Items& items) const {
    const Program& first = plan_.candidates.front().program;
    return finds_ranges_while_splitting() && items.count == 1 &&
           !(a_.has(first.split_a) && b_.has(first.split_b));
  }

  // Begins the fallback chain: finds ranges and selects. If the first candidate's split finds the ranges, its
  // products are made too, before the selection if multiplies_before_selection(); then end_chain() selects.
  // Returns the first candidate that is still to be multiplied.
  int begin_chain(const Items& items) const {
    if (finds_ranges_while_splitting()) {
      const bool multiplies_first = multiplies_before_selection();
      const FusedSlices slices = split(0, items, all_of_c(), {.conditional = false, .ranges_known = false});
      summarize(items);
      if (!multiplies_first) select(items, false);
      multiply(0, items, slices, all_of_c(), !multiplies_first);
      return 1;
    }
    engine_.find_ranges(queue_, a_.prepared == nullptr ? a_.at(items) : DeviceSide{},
                        b_.prepared == nullptr ? b_.at(items) : DeviceSide{}, operands_.scalars);
    summarize(items);
    select(items, false);
    return 0;
  }

  void multiply_candidate(int r, const Items& items, const Conditions& conditions) const {
    FusedSlices slices;
    for_each_block(blocking_, plan_.problem.m, plan_.problem.n, [&](const ResultBlock& block) {
      const FusedSlices made = split(r, items, block, conditions);
      if (needs_split_of_rows(block, blocking_, plan_.problem.m)) slices.a = made.a;
      if (needs_split_of_columns(block)) slices.b = made.b;
      multiply(r, items, slices, block, conditions.conditional);
    });
  }

  // Condition of a candidate's kernels. Kernels after the first candidate's products read the selection early
  // if it was made before these products.
  DeviceCondition on_candidate(bool conditional, std::int32_t candidate) const {
    return {conditional ? memory_.selections : nullptr, candidate,
            conditional && candidate > 0 && !multiplies_before_selection()};
  }

  // True for a batch of small items, compared to which the early exits of a split of many thread blocks take
  // long.
  bool has_small_items() const {
    const Problem& problem = plan_.problem;
    return problem.batch_count > 1 &&
           static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k) <
               engine_.thresholds().small_item_products;
  }

  // Returns a prepared operand's slices, or the slices that the split added to `splits` will make.
  Slices plan_split(const FusedSide& side, const SplitRule& rule, const Slices& memory, const Items& items,
                    const Part& vectors, bool ranges_known, std::vector<DeviceSplit>& splits) const {
    if (side.has(rule)) return side.prepared_item(items.first).slices.block(vectors.first, vectors.count);
    Slices slices = memory;
    slices.vectors = vectors.count;
    splits.push_back({.side = side.at(items, rule),
                      .first = vectors.first,
                      .rule = &rule,
                      .slices = slices,
                      .ranges_known = ranges_known && side.prepared == nullptr,
                      .finds_depth = !ranges_known && plan_.candidates.front().acceptance.mean_depth > 0});
    return slices;
  }

  FusedSlices split(int r, const Items& items, const ResultBlock& block, const Conditions& conditions) const {
    const Candidate& candidate = plan_.candidates[static_cast<std::size_t>(r)];
    FusedSlices slices = fused_slices(plan_, candidate, blocking_);
    const std::int64_t items_a = a_.shared ? 1 : max_items_;
    slices.a.place_items(memory_.slices, items_a);
    slices.b.place_items(memory_.slices + static_cast<std::size_t>(items_a) * slices.a.bytes(),
                         b_.shared ? 1 : max_items_);
    std::vector<DeviceSplit> splits;
    splits.reserve(2);
    if (needs_split_of_rows(block, blocking_, plan_.problem.m)) {
      slices.a = plan_split(a_, candidate.program.split_a, slices.a, items, {block.row, block.rows},
                            conditions.ranges_known, splits);
    }
    if (needs_split_of_columns(block)) {
      slices.b = plan_split(b_, candidate.program.split_b, slices.b, items, {block.column, block.columns},
                            conditions.ranges_known, splits);
    }
    for (DeviceSplit& split : splits) split.unlikely = r > 0 && has_small_items();
    if (r == 0 && clears_counters(items)) splits.front().cleared = memory_.counters;
    if (!splits.empty()) engine_.split(queue_, splits, on_candidate(conditions.conditional, r));
    count_tiles(r, items, slices, block, on_candidate(conditions.conditional, r));
    return slices;
  }

  // Counts the tiles of each operand once, for the report.
  void count_tiles(int r, const Items& items, const FusedSlices& slices, const ResultBlock& block,
                   const DeviceCondition& condition) const {
    const Program& program = plan_.candidates[static_cast<std::size_t>(r)].program;
    if (operands_.report == nullptr || program.schedule.tiles.depth == 0) return;
    DeviceTileCount count;
    count.shares_a = a_.shared;
    count.shares_b = b_.shared;
    count.items = items.count;
    count.condition = condition;
    if (block.column == 0) count.a = slices.a;
    if (block.row == 0) count.b = slices.b;
    if (count.a.data != nullptr || count.b.data != nullptr)
      engine_.count_tiles(queue_, count, operands_.report);
  }

  DeviceTile tile_of(const DeviceSide& a, const DeviceSide& b, const Items& items, const ResultBlock& block,
                     const DeviceCondition& condition) const {
    return {.a = a,
            .b = b,
            .c = operands_.c,
            .item = items.first,
            .first_row = block.row,
            .first_column = block.column,
            .rows = block.rows,
            .columns = block.columns,
            .scalars = operands_.scalars,
            .condition = condition,
            .items = items.count};
  }

  void multiply(int r, const Items& items, const FusedSlices& slices, const ResultBlock& block,
                bool conditional) const {
    const Candidate& candidate = plan_.candidates[static_cast<std::size_t>(r)];
    engine_.multiply_fused(
        queue_,
        {.schedule = &candidate.program.schedule,
         .a = slices.a,
         .b = slices.b,
         .shares_a = a_.shared,
         .shares_b = b_.shared,
         .tile = tile_of(a_.at(items, candidate.program.split_a), b_.at(items, candidate.program.split_b),
                         items, block, on_candidate(conditional, r)),
         .items = items.count,
         .has_cleared_counters = clears_counters(items)},
        memory_.scratch);
  }

  // Ends the fallback chain: writes beta C where alpha is 0, and the native product where no emulation was
  // selected. Selects before, if begin_chain() has not.
  void end_chain(const Items& items) const {
    for (std::int64_t e = 0; e < items.count; ++e) {
      if (operands_.scalars.on_device()) {
        engine_.scale(queue_, operands_.c, items.first + e, operands_.scalars,
                      {memory_.selections + e, DeviceSelection::scaled});
      }
    }
    if (plan_.candidates.back().scheme != nullptr) return;
    const auto native = static_cast<std::int32_t>(plan_.candidates.size()) - 1;
    const DeviceTile tile =
        tile_of(a_.at(items), b_.at(items), items, all_of_c(), on_candidate(true, native));
    if (!multiplies_before_selection()) return engine_.multiply_unsplit(queue_, tile);
    engine_.select_or_multiply_unsplit(queue_, tile, candidates_on_device(plan_), memory_.selections,
                                       {operands_.report, begins_with_selection(plan_), true});
  }

  const Plan& plan_;
  const DeviceEngine& engine_;
  Queue queue_;
  const DeviceOperands& operands_;
  Blocking blocking_;
  std::int64_t max_items_;  // largest number of items multiplied at once
  FusedMemory memory_;
  FusedSide a_;
  FusedSide b_;
};

}  // namespace

void multiply_fused(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace) {
  FusedCall(plan, operands, queue, blocking, workspace).multiply_all();
}

}  // namespace kintsugi::core
