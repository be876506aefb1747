#include "execute/device/fused.hpp"

#include <algorithm>
#include <vector>

#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "execute/device/operands.hpp"
#include "execute/device/prepare.hpp"
#include "execute/execute.hpp"
#include "planner/workspace/device.hpp"

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
  bool shared;          // true: all batch items have the same slices
  VectorRange* ranges;  // this call's memory for ranges, not the prepared operand's
  MergedSummary*
      summaries;  // memory for summaries of the ranges; nullptr: ranges are few, or the side is prepared

  FusedSide(const DeviceMatrix& operand, const DevicePrepared* given, VectorRange* memory,
            MergedSummary* summary_memory)
      : matrix(operand), prepared(given),
        shared(given != nullptr ? given->items.size() == 1 : is_shared(operand)), ranges(memory),
        summaries(given != nullptr ? nullptr : summary_memory) {}

  const DevicePrepared::Item& prepared_item(std::int64_t item) const {
    return prepared->items[shared ? 0 : static_cast<std::size_t>(item)];
  }
  // True if the operand was prepared by the rule.
  bool has(const SplitRule& rule) const { return prepared != nullptr && prepared->rule == rule; }
  // Returns the side of these items for steps that read only exponents and flags. Its scales may belong to
  // any rule.
  DeviceSide at(const Items& items) const {
    DeviceSide side = with(prepared == nullptr ? ranges : prepared_item(items.first).ranges, items);
    side.summaries = prepared == nullptr ? summaries : prepared_item(items.first).summary;
    return side;
  }
  // Returns the side of these items with ranges for the scales of the rule. If the operand was prepared by
  // another rule, these are this call's ranges, since later calls need the prepared scales.
  DeviceSide at(const Items& items, const SplitRule& rule) const {
    return with(has(rule) ? prepared_item(items.first).ranges : ranges, items);
  }

 private:
  DeviceSide with(VectorRange* vector_ranges, const Items& items) const {
    return {
        .matrix = matrix, .item = items.first, .ranges = vector_ranges, .items = shared ? 1 : items.count};
  }
};

// Returns the prepared operand; nullptr if it has no slices because it was prepared only for native products.
const DevicePrepared* with_slices(const DevicePrepared* prepared) {
  return prepared == nullptr || prepared->items.empty() ? nullptr : prepared;
}

class FusedCall {
 public:
  FusedCall(const Plan& plan, const DeviceOperands& operands, const Queue& queue, const Blocking& blocking,
            Workspace workspace)
      : plan_(plan), queue_(queue), operands_(operands), blocking_(blocking),
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
    bool conditional;   // true: the candidate's kernels exit early unless the candidate was selected
    bool ranges_known;  // true: ranges were found before the split
  };

  // Returns the largest number of items in a step. Kernels read the number of items from the sides
  // (DeviceSide::items), and a shared side counts as one item. Therefore the number is 1 if both sides are
  // shared.
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
      if (side->summaries != nullptr) cuda::summarize(queue_, side->at(items), side->summaries);
    }
  }
  // with_products: the selection may run at the same time as the products before it.
  enum class Overlap : bool { none, with_products };
  void select(const Items& items, Overlap overlap) const {
    cuda::select(queue_, a_.at(items), b_.at(items), operands_.scalars, candidates_on_device(plan_),
                 memory_.selections,
                 {.report = operands_.report,
                  .begins = begins_with_selection(plan_),
                  .overlaps_products = overlap == Overlap::with_products});
  }

  // Puts the steps of some batch items into the queue. Each launch serves all of these items.
  void multiply_together(const Items& items) const {
    const bool conditional = plan_.candidates.size() > 1 || operands_.scalars.on_device();
    if (!conditional) {
      multiply_candidate(0, items, {.conditional = false, .ranges_known = false});
      if (operands_.report == nullptr) return;
      // The only candidate has run already. The selection is made only for the report.
      summarize(items);
      const bool follows_products = a_.summaries == nullptr && b_.summaries == nullptr;
      select(items, follows_products ? Overlap::with_products : Overlap::none);
      return;
    }
    const int next = begin_chain(items);
    for (int candidate = next; candidate < static_cast<int>(emulations(plan_).size()); ++candidate)
      multiply_candidate(candidate, items, {.conditional = true, .ranges_known = true});
    end_chain(items);
  }

  // True if the only emulation is multiplied before the selection, since it accepts most operands. If native
  // is selected later, C is overwritten. That is possible only if C is not read (beta = 0).
  bool multiplies_before_selection() const {
    return emulations(plan_).size() == 1 && finds_ranges_while_splitting() && operands_.scalars.beta == 0.0;
  }
  ResultBlock all_of_c() const { return {0, 0, plan_.problem.m, plan_.problem.n}; }
  // True if the split of the first candidate finds the ranges. This requires that the split reads whole
  // operands, and that the host knows that alpha is not 0.
  bool finds_ranges_while_splitting() const {
    return covers_all(plan_, blocking_) && !operands_.scalars.on_device();
  }
  // True if the first split clears the counters of the products. This requires that the split always runs,
  // and that the counters are used only once after it, which holds for a single batch item.
  bool clears_counters(const Items& items) const {
    const Program& first = plan_.candidates.front().program;
    return finds_ranges_while_splitting() && items.count == 1 &&
           !(a_.has(first.split_a) && b_.has(first.split_b));
  }

  // Begins the fallback chain: finds ranges and selects. If the first candidate's split finds the ranges,
  // also multiplies the first candidate. If multiplies_before_selection(), end_chain() makes the selection
  // instead. Returns the first candidate that is not multiplied yet.
  int begin_chain(const Items& items) const {
    if (finds_ranges_while_splitting()) {
      const bool multiplies_first = multiplies_before_selection();
      const FusedSlices slices = split(0, items, all_of_c(), {.conditional = false, .ranges_known = false});
      summarize(items);
      if (!multiplies_first) select(items, Overlap::none);
      multiply(0, items, slices, all_of_c(), !multiplies_first);
      return 1;
    }
    cuda::find_ranges(queue_, a_.prepared == nullptr ? a_.at(items) : DeviceSide{},
                      b_.prepared == nullptr ? b_.at(items) : DeviceSide{}, operands_.scalars);
    summarize(items);
    select(items, Overlap::none);
    return 0;
  }

  void multiply_candidate(int candidate, const Items& items, const Conditions& conditions) const {
    FusedSlices slices;
    for_each_block(blocking_, plan_.problem.m, plan_.problem.n, [&](const ResultBlock& block) {
      const FusedSlices made = split(candidate, items, block, conditions);
      if (needs_split_of_rows(block, blocking_, plan_.problem.m)) slices.a = made.a;
      if (needs_split_of_columns(block, blocking_, plan_.problem.m)) slices.b = made.b;
      multiply(candidate, items, slices, block, conditions.conditional);
    });
  }

  // Returns the condition of a candidate's kernels. The last member says that they may read the selection
  // while the preceding kernel runs. Kernels of later candidates may do so if the selection precedes the
  // first candidate's products.
  DeviceCondition on_candidate(bool conditional, std::int32_t candidate) const {
    return {conditional ? memory_.selections : nullptr, candidate,
            conditional && candidate > 0 && !multiplies_before_selection()};
  }

  // True for a batch of small items. The early exits of a split with many thread blocks would take long
  // beside their products.
  bool has_small_items() const {
    const Problem& problem = plan_.problem;
    return problem.batch_count > 1 &&
           static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k) <
               cuda::thresholds().small_item_products;
  }

  // Returns prepared slices if the operand has them. Otherwise adds a split to `splits` and returns the
  // slices that the split will make.
  Slices plan_split(const FusedSide& side, const SplitRule& rule, const Slices& memory, const Items& items,
                    const Interval& vectors, bool ranges_known, std::vector<DeviceSplit>& splits) const {
    if (side.has(rule)) return side.prepared_item(items.first).slices.block(vectors.first, vectors.count);
    Slices slices = memory;
    slices.vectors = vectors.count;
    splits.push_back({.side = side.at(items, rule),
                      .first = vectors.first,
                      .rule = &rule,
                      .slices = slices,
                      .ranges_known = ranges_known && side.prepared == nullptr,
                      .finds_depth = !ranges_known && accepts_by_mean_depth()});
    return slices;
  }

  bool accepts_by_mean_depth() const {
    return std::ranges::any_of(
        plan_.candidates, [](const Candidate& candidate) { return candidate.acceptance.mean_depth > 0; });
  }

  const Program& program_of(int candidate) const {
    return plan_.candidates[static_cast<std::size_t>(candidate)].program;
  }

  // Splits the vectors of a block that were not vectors of the preceding block.
  FusedSlices split(int candidate, const Items& items, const ResultBlock& block,
                    const Conditions& conditions) const {
    const Program& program = program_of(candidate);
    FusedSlices slices =
        fused_slices(plan_, plan_.candidates[static_cast<std::size_t>(candidate)], blocking_);
    const std::int64_t items_a = a_.shared ? 1 : max_items_;
    slices.a.place_items(memory_.slices, items_a);
    slices.b.place_items(memory_.slices + static_cast<std::size_t>(items_a) * slices.a.bytes(),
                         b_.shared ? 1 : max_items_);
    std::vector<DeviceSplit> splits;
    splits.reserve(2);
    if (needs_split_of_rows(block, blocking_, plan_.problem.m)) {
      slices.a = plan_split(a_, program.split_a, slices.a, items, {block.row, block.rows},
                            conditions.ranges_known, splits);
    }
    if (needs_split_of_columns(block, blocking_, plan_.problem.m)) {
      slices.b = plan_split(b_, program.split_b, slices.b, items, {block.column, block.columns},
                            conditions.ranges_known, splits);
    }
    for (DeviceSplit& split : splits) {
      split.unlikely = candidate > 0 && has_small_items();
      split.needs_padding = false;
    }
    if (candidate == 0 && clears_counters(items)) splits.front().cleared = memory_.counters;
    if (!splits.empty()) cuda::split(queue_, splits, on_candidate(conditions.conditional, candidate));
    count_tiles(program, items, slices, block, on_candidate(conditions.conditional, candidate));
    return slices;
  }

  // Counts the tiles of each operand once, for the report.
  void count_tiles(const Program& program, const Items& items, const FusedSlices& slices,
                   const ResultBlock& block, const DeviceCondition& condition) const {
    if (operands_.report == nullptr || program.schedule.tiles.depth == 0) return;
    DeviceTileCount count;
    count.shares_a = a_.shared;
    count.shares_b = b_.shared;
    count.items = items.count;
    count.condition = condition;
    if (block.column == 0) count.a = slices.a;
    if (needs_split_of_columns(block, blocking_, plan_.problem.m)) count.b = slices.b;
    if (count.a.data != nullptr || count.b.data != nullptr)
      cuda::count_tiles(queue_, count, operands_.report);
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

  void multiply(int candidate, const Items& items, const FusedSlices& slices, const ResultBlock& block,
                bool conditional) const {
    const Program& program = program_of(candidate);
    cuda::multiply_fused(queue_,
                         {.schedule = &program.schedule,
                          .a = slices.a,
                          .b = slices.b,
                          .shares_a = a_.shared,
                          .shares_b = b_.shared,
                          .tile = tile_of(a_.at(items, program.split_a), b_.at(items, program.split_b), items,
                                          block, on_candidate(conditional, candidate)),
                          .items = items.count,
                          .has_cleared_counters = clears_counters(items)},
                         memory_.scratch);
  }

  // Ends the fallback chain: writes beta C for items with alpha = 0, and the native product for items that
  // selected no emulation. If begin_chain() has made no selection, makes it first.
  void end_chain(const Items& items) const {
    for (std::int64_t i = 0; i < items.count; ++i) {
      if (operands_.scalars.on_device()) {
        cuda::scale(queue_, operands_.c, items.first + i, operands_.scalars,
                    {memory_.selections + i, DeviceSelection::scaled});
      }
    }
    if (plan_.candidates.back().scheme != nullptr) return;
    const auto native = static_cast<std::int32_t>(plan_.candidates.size()) - 1;
    constexpr bool conditional = true;
    const DeviceTile tile =
        tile_of(a_.at(items), b_.at(items), items, all_of_c(), on_candidate(conditional, native));
    if (!multiplies_before_selection()) return cuda::multiply_unsliced(queue_, tile);
    cuda::select_or_multiply_unsliced(
        queue_, tile, candidates_on_device(plan_), memory_.selections,
        {.report = operands_.report, .begins = begins_with_selection(plan_), .overlaps_products = true});
  }

  const Plan& plan_;
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
