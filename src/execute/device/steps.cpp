#include "execute/device/steps.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "execute/device/prepare.hpp"
#include "planner/device_call.hpp"
#include "planner/memory.hpp"
#include "planner/steps.hpp"

namespace kintsugi::core {

namespace {

// True if all batch items have the same operand.
bool is_shared(const DeviceMatrix& matrix) { return !matrix.pointers && matrix.batch_stride == 0; }

// Returns the candidate's schedule. Groups whose weights the device sets, since it fits their residuals to
// the ranges, get the exponent fitted_exponent.
Schedule schedule_to_fit(const Candidate& candidate) {
  Schedule schedule = candidate.program.schedule;
  for (const int group : candidate.scheme->fitted_groups) schedule.group_exponents[group] = fitted_exponent;
  return schedule;
}

// One side of the call. Its operand may be prepared.
struct CallSide {
  DeviceMatrix matrix;
  const DevicePrepared* prepared;
  bool shared;  // all batch items have the same operand and slices
  DeviceMemory::Side memory;
  // Slices of the current candidate's current block.
  Slices slices{};
  SplitVectors split_vectors{};
  bool has_new_slices = false;     // the current block is the first with these vectors
  bool has_copied_ranges = false;  // those of the prepared operand were copied to `memory` for this item

  const DevicePrepared::Item& prepared_item(std::int64_t item) const {
    return prepared->items[prepared->items.size() == 1 ? 0 : static_cast<std::size_t>(item)];
  }
  // True if the operand was prepared by the rule.
  bool has(const SplitRule& rule) const { return prepared != nullptr && prepared->rule == rule; }
};

class DeviceRun {
 public:
  DeviceRun(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
            const DeviceOperands& operands, const Queue& queue, Workspace& workspace)
      : plan_(plan), blocking_(blocking), operands_(operands), queue_(queue),
        is_fused_(std::ranges::find(steps, StepKind::fused, &Step::kind) != steps.end()),
        items_at_once_(steps.front().size.m), memory_(lay_out_device(plan, steps, blocking, workspace)),
        a_(side(operands.a, operands.prepared_a, Side::a)),
        b_(side(operands.b, operands.prepared_b, Side::b)) {}

  void run(std::span<const Step> steps) {
    // Kernels read the number of items from the sides (DeviceSide::items), and a shared side counts as one
    // item. Therefore the number is 1 if both sides are shared.
    const std::int64_t at_once = a_.shared && b_.shared ? 1 : items_at_once_;
    for_each_interval({0, plan_.problem.batch_count}, at_once, [&](const Interval& items) {
      begin_items(items);
      run_steps(steps);
    });
  }

 private:
  // ---------------------------------------------------------------- sides

  // Ranges of a prepared operand are used if they were found for the first candidate; by fused kernels, whose
  // splits may find ranges again, whatever they were found for.
  CallSide side(const DeviceMatrix& matrix, const DevicePrepared* given, Side which) const {
    const Program& first = first_candidate().program;
    const bool is_usable = given != nullptr && !given->items.empty() &&
                           (is_fused_ || given->rule == (which == Side::a ? first.split_a : first.split_b));
    const DevicePrepared* prepared = is_usable ? given : nullptr;
    return {.matrix = matrix,
            .prepared = prepared,
            .shared = prepared != nullptr ? prepared->items.size() == 1 : is_shared(matrix),
            .memory = which == Side::a ? memory_.a : memory_.b};
  }

  DeviceSide side_with(const CallSide& side, VectorRange* ranges) const {
    DeviceSide result{.matrix = side.matrix, .item = items_.first, .ranges = ranges};
    result.items = side.shared ? 1 : items_.count;
    result.norms = side.memory.norms;
    if (side.prepared != nullptr && result.norms != nullptr)
      result.norms = side.prepared_item(items_.first).norms;
    if (side.prepared == nullptr) result.magnitudes = side.memory.magnitudes;
    return result;
  }

  // Returns a side for steps that read exponents and flags of its ranges, whose scales may belong to any
  // candidate.
  DeviceSide found(const CallSide& side) const {
    if (side.prepared == nullptr) {
      DeviceSide result = side_with(side, side.memory.ranges);
      result.summaries = side.memory.summaries;
      return result;
    }
    const DevicePrepared::Item& item = side.prepared_item(items_.first);
    DeviceSide result = side_with(side, item.ranges);
    result.summaries = item.summary;
    return result;
  }
  // Returns the side if its ranges must be found; an empty side if a prepared operand has them.
  DeviceSide unprepared(const CallSide& side) const {
    return side.prepared == nullptr ? found(side) : DeviceSide{};
  }
  // Returns a side whose ranges get, or have, the scales of the rule. Prepared scales stay as they are: later
  // calls need them.
  DeviceSide scaled(const CallSide& side, const SplitRule& rule) const {
    return side_with(side, side.has(rule) ? side.prepared_item(items_.first).ranges : side.memory.ranges);
  }

  const SplitRule& rule_of(const CallSide& side, const Candidate& candidate) const {
    return &side == &a_ ? candidate.program.split_a : candidate.program.split_b;
  }

  // Copies the ranges of an operand that was prepared for the first candidate, so that another candidate can
  // change their scales. (Fused kernels' splits find the ranges again instead.)
  void copy_prepared_ranges(CallSide& side, const Candidate& candidate) {
    if (is_fused_ || side.prepared == nullptr || side.has_copied_ranges || side.has(rule_of(side, candidate)))
      return;
    cuda::copy_on_device(queue_, side.memory.ranges, side.prepared_item(items_.first).ranges,
                         static_cast<std::size_t>(side.matrix.vectors()) * sizeof(VectorRange));
    side.has_copied_ranges = true;
  }

  // ---------------------------------------------------------------- steps

  const Candidate& first_candidate() const { return plan_.candidates.front(); }
  const Candidate& candidate(int index) const { return plan_.candidates[static_cast<std::size_t>(index)]; }
  // Returns the step's candidate; of several that share it, the one with the most moduli.
  const Candidate& most(const Step& step) const { return candidate(step.last_candidate()); }
  ResultBlock all_of_c() const { return {0, 0, operands_.c.rows, operands_.c.columns}; }

  bool holds(CallProperty property) const {
    switch (property) {
      case CallProperty::never: return false;
      case CallProperty::always: return true;
      case CallProperty::reported: return operands_.report != nullptr;
      case CallProperty::overwrites_c: return operands_.scalars.beta == 0.0;
      case CallProperty::adds_to_c: return operands_.scalars.beta != 0.0;
    }
    return false;
  }

  void begin_items(const Interval& items) {
    items_ = items;
    outer_ = block_ = tile_ = all_of_c();
    a_.has_copied_ranges = b_.has_copied_ranges = false;
    has_cleared_counters_ = false;
    if (is_ozaki1(plan_))
      ozaki1_.emplace(plan_, blocking_, memory_.ozaki1, queue_, operands_, found(a_), found(b_),
                      memory_.selections);
  }

  void run_steps(std::span<const Step> steps) {
    for_each_step(steps, [&](const Step& step, std::span<const Step> body) {
      if (holds(step.when)) run_step(step, body);
    });
  }

  void run_step(const Step& step, std::span<const Step> body) {
    switch (step.kind) {
      case StepKind::for_blocks: return run_blocks(step, body);
      case StepKind::for_tiles: return run_tiles(step, body);
      case StepKind::find_ranges:
        return cuda::find_ranges(queue_, unprepared(a_), unprepared(b_), operands_.scalars);
      case StepKind::find_norms:
        return cuda::find_norms(queue_, unprepared(a_), unprepared(b_), operands_.scalars);
      case StepKind::find_scaling_norms:
        return cuda::find_scaling_norms(queue_, unprepared(a_), unprepared(b_), operands_.scalars);
      case StepKind::summarize: return summarize();
      case StepKind::select: return select(step);
      case StepKind::split: return split(step);
      case StepKind::split_by_norms: return split_by_norms(step);
      case StepKind::count_tiles: return count_tiles(step);
      case StepKind::multiply: return multiply(step);
      case StepKind::recombine: return recombine(step);
      case StepKind::recombine_last: return recombine_kept_tile();
      case StepKind::fused: return multiply_fused(step);
      case StepKind::multiply_exactly: return cuda::multiply_exactly(queue_, tile(all_of_c(), 0));
      case StepKind::multiply_natively:
        return cuda::multiply_unsliced(queue_, tile(all_of_c(), step.candidate));
      case StepKind::select_or_multiply_natively: return select_or_multiply_natively(step);
      case StepKind::scale: return scale();
      case StepKind::choose_checked:
      case StepKind::begin_checks:
      case StepKind::split_magnitudes:
      case StepKind::find_rounding_errors:
      case StepKind::multiply_magnitudes:
      case StepKind::recombine_checked:
      case StepKind::advance_checks:
      case StepKind::recompute: return run_checked(step);
      case StepKind::count_slices: return ozaki1_->count_slices();
      case StepKind::split_successively: return ozaki1_->split(block_);
      case StepKind::multiply_successively: return ozaki1_->multiply(block_, tile_);
      case StepKind::finish_item: return ozaki1_->finish_item();
      case StepKind::for_items:
      case StepKind::multiply_checked:
      case StepKind::multiply_by_ozaki1:
      case StepKind::write_special_values: break;
    }
    fail(Status::internal, "the step {} is not one of a queue", step_name(step.kind));
  }

  // ---------------------------------------------------------------- loops

  void run_blocks(const Step& loop, std::span<const Step> body) {
    const ResultBlock whole = block_;
    if (loop.candidate != Step::no_candidate) begin_candidate(loop, body);
    for_each_block(loop.size, whole.rows, whole.columns, [&](const ResultBlock& block) {
      outer_ = whole;
      block_ = tile_ = whole.in_matrix(block);
      run_steps(body);
    });
    outer_ = block_ = tile_ = whole;
  }

  // Takes the memory of the candidate's blocks. All candidates use the same memory, one after the other.
  void begin_candidate(const Step& loop, std::span<const Step> body) {
    a_.split_vectors.forget();
    b_.split_vectors.forget();
    if (is_ozaki1(plan_)) return;
    Workspace blocks(memory_.blocks, memory_.block_bytes);
    const SliceItems items{a_.shared ? 1 : items_at_once_, b_.shared ? 1 : items_at_once_};
    block_memory_ = lay_out_block(plan_, loop, body, items, blocks);
    if (loop.candidate == 0) return;
    copy_prepared_ranges(a_, candidate(loop.candidate));
    copy_prepared_ranges(b_, candidate(loop.candidate));
  }

  void run_tiles(const Step& loop, std::span<const Step> body) {
    for_each_block(loop.size, block_.rows, block_.columns, [&](const ResultBlock& tile) {
      tile_ = block_.in_matrix(tile);
      run_steps(body);
    });
    tile_ = block_;
  }

  // ---------------------------------------------------------------- conditions and tiles

  // Returns the condition of a candidate's kernels: they exit early unless the candidate is selected. The
  // selection precedes the first candidate's products, so that kernels of later candidates may read it while
  // the preceding kernel runs.
  DeviceCondition on_candidate(int index, bool selected_earlier = true) const {
    return {memory_.selections, index, index > 0 && selected_earlier};
  }
  DeviceCondition condition_of(const Step& step) const {
    if (most(step).checked) return {&memory_.checked.open_elements.state->current, step.candidate};
    return holds(step.selected) ? on_candidate(step.last_candidate())
                                : DeviceCondition{nullptr, step.candidate};
  }

  DeviceTile tile_with(const DeviceSide& a, const DeviceSide& b, const ResultBlock& block,
                       const DeviceCondition& condition) const {
    return {.a = a,
            .b = b,
            .c = operands_.c,
            .item = items_.first,
            .first_row = block.row,
            .first_column = block.column,
            .rows = block.rows,
            .columns = block.columns,
            .scalars = operands_.scalars,
            .condition = condition,
            .items = items_.count};
  }
  // Returns a tile for steps that do not read scales.
  DeviceTile tile(const ResultBlock& block, int index) const {
    return tile_with(found(a_), found(b_), block, on_candidate(index));
  }
  // Returns the current tile for a step of a candidate.
  DeviceTile scaled_tile(const Step& step) const {
    const Program& program = most(step).program;
    return tile_with(scaled(a_, program.split_a), scaled(b_, program.split_b), tile_, condition_of(step));
  }

  // ---------------------------------------------------------------- selection

  void summarize() const {
    for (const CallSide* side : {&a_, &b_}) {
      if (side->memory.summaries != nullptr && side->prepared == nullptr)
        cuda::summarize(queue_, found(*side), side->memory.summaries);
    }
  }

  bool has_summaries() const {
    return std::ranges::any_of(std::array{&a_, &b_}, [](const CallSide* side) {
      return side->memory.summaries != nullptr && side->prepared == nullptr;
    });
  }

  DeviceReporting reporting(bool overlaps_products) const {
    return {.report = is_ozaki1(plan_) ? nullptr : operands_.report,
            .begins = begins_with_selection(plan_),
            .overlaps_products = overlaps_products};
  }

  void select(const Step& step) const {
    const DeviceReporting report = reporting(step.overlaps && !has_summaries());
    if (has_long_chain(plan_))
      return cuda::select_by_norms(queue_, found(a_), found(b_), operands_.scalars, norm_candidates(plan_),
                                   memory_.selections, report);
    cuda::select(queue_, found(a_), found(b_), operands_.scalars, candidates_on_device(plan_),
                 memory_.selections, report);
  }

  // ---------------------------------------------------------------- splits

  // True for a batch of small items. The early exits of a split with many thread blocks would take long
  // beside their products.
  bool has_small_items() const {
    const Problem& problem = plan_.problem;
    return problem.batch_count > 1 &&
           static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k) <
               cuda::thresholds().small_item_products;
  }

  bool accepts_by_mean_depth() const {
    return std::ranges::any_of(
        plan_.candidates, [](const Candidate& candidate) { return candidate.acceptance.mean_depth > 0; });
  }

  const DeviceFit* fit() const {
    return first_candidate().scheme->fits_residuals() ? &memory_.selections->fit : nullptr;
  }

  // Makes the side's slices those of the vectors: prepared slices, or those that the split will make which is
  // then added to `splits`. Does nothing if the preceding block had the same vectors.
  void add_split(CallSide& side, int index, bool finds_ranges, const Interval& vectors,
                 OfSides<DeviceSplit>& splits) {
    const Candidate& split_candidate = candidate(index);
    if (split_candidate.checked) side.split_vectors.forget();  // the condition may have changed
    side.has_new_slices = side.split_vectors.replace(vectors.first);
    if (!side.has_new_slices) return;
    const SplitRule& rule = rule_of(side, split_candidate);
    if (side.has(rule) && side.prepared_item(items_.first).slices.data != nullptr) {
      side.slices = side.prepared_item(items_.first).slices.block(vectors.first, vectors.count);
      return;
    }
    side.slices = &side == &a_ ? block_memory_.a : block_memory_.b;
    side.slices.vectors = vectors.count;
    DeviceSplit split{.side = scaled(side, rule),
                      .first = vectors.first,
                      .rule = &rule,
                      .slices = side.slices,
                      .ranges_known = !finds_ranges && (!is_fused_ || side.prepared == nullptr),
                      .fit = fit()};
    if (is_fused_) {
      split.unlikely = index > 0 && has_small_items();
      split.finds_depth = finds_ranges && accepts_by_mean_depth();
      split.needs_padding = false;
    }
    splits.push_back(split);
  }

  // Returns the splits for the current block. Where one operand is split after the other, that of the fused
  // kernels begins with A.
  OfSides<DeviceSplit> make_splits(int index, bool finds_ranges) {
    const std::int64_t per_column = vectors_per_column(plan_, candidate(index));
    const Interval rows{block_.row, block_.rows};
    const Interval columns{per_column * block_.column, per_column * block_.columns};
    OfSides<DeviceSplit> splits;
    if (is_fused_) add_split(a_, index, finds_ranges, rows, splits);
    add_split(b_, index, finds_ranges, columns, splits);
    if (!is_fused_) add_split(a_, index, finds_ranges, rows, splits);
    return splits;
  }

  void split(const Step& step) {
    recombine_kept_tile(step.candidate);
    OfSides<DeviceSplit> splits = make_splits(step.last_candidate(), step.finds_ranges);
    if (splits.empty()) return;
    if (step.shared > 0) {
      std::array<SplitRule, Plan::max_candidates> rules;
      for (int c = 0; c < step.shared; ++c)
        rules[static_cast<std::size_t>(c)] = candidate(step.candidate + c).program.split_a;
      return cuda::split_selected(queue_, splits,
                                  std::span(rules).first(static_cast<std::size_t>(step.shared)),
                                  selected_moduli(step));
    }
    // A split that always runs clears the counters of products that use them only once.
    if (is_fused_ && step.finds_ranges && items_.count == 1 && covers_all(plan_, blocking_)) {
      splits.front().cleared = memory_.counters;
      has_cleared_counters_ = true;
    }
    cuda::split(queue_, splits, condition_of(step));
  }

  // Finds norms and splits for the first candidate in one step, where the split of every operand can do so:
  // the plan expects it of operands that are not prepared.
  void split_by_norms(const Step& step) {
    OfSides<DeviceSplit> splits = make_splits(step.candidate, /*finds_ranges=*/false);
    const auto finds_norms = [](const DeviceSplit& split) { return cuda::finds_norms(split); };
    if (!splits.empty() && std::ranges::all_of(splits, finds_norms))
      return cuda::split_by_norms(queue_, splits, operands_.scalars, proved_coefficient(plan_),
                                  memory_.selections);
    cuda::find_norms(queue_, unprepared(a_), unprepared(b_), operands_.scalars);
    if (!splits.empty()) cuda::split(queue_, splits, {});
  }

  // Counts the tiles of each operand once, for the report.
  void count_tiles(const Step& step) const {
    DeviceTileCount count;
    count.shares_a = a_.shared;
    count.shares_b = b_.shared;
    count.items = items_.count;
    count.condition = condition_of(step);
    if (block_.column == 0) count.a = a_.slices;
    if (b_.has_new_slices) count.b = b_.slices;
    if (count.a.data != nullptr || count.b.data != nullptr)
      cuda::count_tiles(queue_, count, operands_.report);
  }

  // ---------------------------------------------------------------- products

  SelectedModuli selected_moduli(const Step& step) const {
    return {.selection = memory_.selections,
            .first = step.candidate,
            .least = candidate(step.candidate).program.split_a.slices,
            .most = most(step).program.split_a.slices};
  }

  // Returns the sums of the current tile, of a candidate or of candidates that share the step.
  Accumulators sums_of_tile(const Candidate& of) const {
    Accumulators sums = block_memory_.sums;
    sums.rows = round_up(tile_.rows, sums_multiple);
    sums.columns = round_up(vectors_per_column(plan_, of) * tile_.columns, sums_multiple);
    return sums;
  }

  void multiply(const Step& step) {
    recombine_kept_tile(step.candidate);
    const std::int64_t per_column = vectors_per_column(plan_, most(step));
    const Slices a = a_.slices.block(tile_.row - block_.row, tile_.rows);
    const Slices b = b_.slices.block(per_column * (tile_.column - block_.column), per_column * tile_.columns);
    const Schedule schedule = schedule_to_fit(most(step));
    const Accumulators sums = sums_of_tile(most(step));
    if (step.shared > 0) return cuda::multiply_selected(queue_, schedule, a, b, sums, selected_moduli(step));
    cuda::multiply(queue_, schedule, most(step).accumulator, a, b, sums, block_memory_.scratch, fit(),
                   condition_of(step));
  }

  // A tile whose products are in the queue and whose recombination is not yet.
  struct KeptTile {
    Accumulators sums;
    DeviceTile tile;
  };

  void recombine(const Step& step) {
    const KeptTile tile{sums_of_tile(most(step)), scaled_tile(step)};
    if (step.shared > 0) return cuda::recombine_selected(queue_, tile.sums, tile.tile, selected_moduli(step));
    if (!step.keeps_last) return recombine(most(step), tile);
    kept_ = tile;
  }

  void recombine(const Candidate& of, const KeptTile& tile) const {
    if (of.program.recombination == Recombination::residues)
      return cuda::recombine_residues(queue_, tile.sums, of.program.residue_system(), tile.tile);
    const Schedule schedule = schedule_to_fit(of);
    std::array<int, max_groups> exponents{};
    for (int g = 0; g < schedule.sums(); ++g) exponents[g] = schedule.sum_exponent(g);
    cuda::recombine_weighted(queue_, tile.sums,
                             {exponents.data(), static_cast<std::size_t>(tile.sums.groups)}, tile.tile);
  }

  // Recombines the tile that the first candidate keeps. Steps of `index` write to its sums or scales next if
  // that is the first candidate.
  void recombine_kept_tile(int index = 0) {
    if (!kept_ || index != 0) return;
    recombine(first_candidate(), *kept_);
    kept_.reset();
  }

  void multiply_fused(const Step& step) const {
    const Problem& problem = plan_.problem;
    const DeviceFusedProduct product{.schedule = &most(step).program.schedule,
                                     .a = a_.slices,
                                     .b = b_.slices,
                                     .shares_a = a_.shared,
                                     .shares_b = b_.shared,
                                     .tile = scaled_tile(step),
                                     .items = items_.count,
                                     .has_cleared_counters = has_cleared_counters_,
                                     .report = operands_.report};
    const bool is_as_planned = step.variant >= 0 && block_.rows == std::min(blocking_.m, problem.m) &&
                               block_.columns == std::min(blocking_.n, problem.n) &&
                               items_.count == items_at_once_;
    if (is_as_planned)
      return step.kernel->launch(queue_, product, plan_.variants[static_cast<std::size_t>(step.variant)],
                                 memory_.scratch);
    DeviceShape shape = fused_shape(plan_, most(step), {block_.rows, block_.columns});
    shape.items = items_.count;
    step.kernel->launch(queue_, product, step.kernel->choose(shape), memory_.scratch);
  }

  void select_or_multiply_natively(const Step& step) const {
    DeviceTile native = tile(all_of_c(), step.candidate);
    native.condition = on_candidate(step.candidate, /*selected_earlier=*/false);
    cuda::select_or_multiply_unsliced(queue_, native, candidates_on_device(plan_), memory_.selections,
                                      reporting(/*overlaps_products=*/true));
  }

  void scale() const {
    for (std::int64_t i = 0; i < items_.count; ++i) {
      cuda::scale(queue_, operands_.c, items_.first + i, operands_.scalars,
                  {memory_.selections + i, DeviceSelection::scaled});
    }
  }

  // ---------------------------------------------------------------- checked candidates

  void run_checked(const Step& step) {
    const Candidate& checked = candidate(step.candidate);
    copy_prepared_ranges(a_, checked);
    copy_prepared_ranges(b_, checked);
    const CheckedSteps steps(plan_, step.candidate, memory_, queue_, scaled(a_, checked.program.split_a),
                             scaled(b_, checked.program.split_b), operands_.report);
    switch (step.kind) {
      case StepKind::choose_checked: return steps.choose();
      case StepKind::begin_checks: return steps.begin();
      case StepKind::split_magnitudes: return steps.split_magnitudes(block_);
      case StepKind::find_rounding_errors: return steps.find_rounding_errors(block_);
      case StepKind::multiply_magnitudes:
        return steps.multiply_magnitudes(block_, tile_, block_memory_.scratch);
      case StepKind::recombine_checked:
        return steps.recombine(sums_of_tile(checked), scaled_tile(step), outer_);
      case StepKind::advance_checks: return steps.advance(block_);
      default: return steps.recompute(tile(block_, 0), block_);
    }
  }

  const Plan& plan_;
  const Blocking& blocking_;
  const DeviceOperands& operands_;
  Queue queue_;
  bool is_fused_;
  std::int64_t items_at_once_;  // items that a launch of a fused kernel multiplies
  DeviceMemory memory_;
  CallSide a_;
  CallSide b_;
  Interval items_{0, 1};
  ResultBlock outer_;  // block around the candidate's blocks: that of checked candidates, else all of C
  ResultBlock block_;
  ResultBlock tile_;
  DeviceBlockMemory block_memory_;
  bool has_cleared_counters_ = false;
  std::optional<KeptTile> kept_;
  std::optional<Ozaki1Steps> ozaki1_;
};

}  // namespace

void run_in_queue(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
                  const DeviceOperands& operands, const Queue& queue, Workspace workspace) {
  DeviceRun(plan, steps, blocking, operands, queue, workspace).run(steps.subspan(1));
}

}  // namespace kintsugi::core
