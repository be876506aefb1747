#include "execute/device/items.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "execute/device/checked.hpp"
#include "execute/device/operands.hpp"
#include "execute/device/ozaki1.hpp"
#include "execute/device/prepare.hpp"
#include "planner/candidates/device.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

namespace {

// One side of a batch item, whose operand may be prepared.
struct ItemSide {
  DeviceSide side;
  VectorRange* ranges = nullptr;  // this call's memory for ranges, not the prepared operand's
  const DevicePrepared::Item* prepared = nullptr;  // prepared operand whose slices this side uses
};

// Returns the prepared operand of a batch item if it was prepared by the rule; else nullptr.
const DevicePrepared::Item* usable(const DevicePrepared* prepared, const SplitRule& rule,
                                   std::int64_t index) {
  if (prepared == nullptr || prepared->items.empty() || !(prepared->rule == rule)) return nullptr;
  return &prepared->items[prepared->items.size() == 1 ? 0 : static_cast<std::size_t>(index)];
}

// `found` has this call's memory for what is found of an operand that is not prepared.
ItemSide item_side(const DeviceMatrix& matrix, std::int64_t index, const DevicePrepared::Item* prepared,
                   const DeviceSide& found) {
  if (prepared == nullptr) {
    DeviceSide side = found;
    side.matrix = matrix;
    side.item = index;
    return {.side = side, .ranges = found.ranges, .prepared = nullptr};
  }
  return {.side = {.matrix = matrix,
                   .item = index,
                   .ranges = prepared->ranges,
                   .norms = prepared->norms,
                   .summaries = prepared->summary},
          .ranges = found.ranges,
          .prepared = prepared};
}

// Returns the side if its ranges must be found; an empty side if a prepared operand has them.
DeviceSide side_without_ranges(const ItemSide& side) {
  return side.prepared == nullptr ? side.side : DeviceSide{};
}

// A tile whose products are in the queue and whose recombination is not yet.
struct UnfinishedTile {
  Accumulators sums;
  DeviceTile tile;
};

// Returns the vectors of the candidate's slices that belong to vectors of an operand.
Interval slices_of(const Candidate& candidate, const Interval& vectors) {
  return {candidate.program.extent_of_slices(vectors.first),
          candidate.program.extent_of_slices(vectors.count)};
}

// Returns the candidate's schedule. Groups whose weights the device sets, since it fits their residuals to
// the ranges, get the exponent fitted_exponent.
Schedule schedule_to_fit(const Candidate& candidate) {
  Schedule schedule = candidate.program.schedule;
  for (const int group : candidate.scheme->fitted_groups) schedule.group_exponents[group] = fitted_exponent;
  return schedule;
}

void recombine(const Queue& queue, const Candidate& candidate, const UnfinishedTile& unfinished) {
  const auto& [sums, tile] = unfinished;
  if (candidate.program.recombination == Recombination::residues)
    return cuda::recombine_residues(queue, sums, candidate.program.residue_system(), tile);
  const Schedule schedule = schedule_to_fit(candidate);
  std::array<int, max_groups> exponents{};
  for (int g = 0; g < schedule.sums(); ++g) exponents[g] = schedule.sum_exponent(g);
  cuda::recombine_weighted(queue, sums, {exponents.data(), static_cast<std::size_t>(sums.groups)}, tile);
}

// Steps of the plan's shared_candidates(), which share kernels (engines/cuda/select/selected_moduli.hpp), for one
// batch item. Memory, splits and schedule are those of the last of these candidates, which has the most
// moduli.
class SharedSteps {
 public:
  SharedSteps(const Plan& plan, const Queue& queue, const DeviceSelection* selection);

  void split(std::span<const DeviceSplit> splits) const;
  void multiply(const Schedule& schedule, const Slices& a, const Slices& b, const Accumulators& sums) const;
  void recombine(const Accumulators& sums, const DeviceTile& tile) const;

 private:
  const Queue* queue_;
  SelectedModuli selected_;
  std::vector<SplitRule> rules_;
};

NormCandidates norm_candidates(const Plan& plan) {
  NormCandidates result;
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.acceptance.by_norms()) result.acceptances[result.count++] = candidate.acceptance;
  }
  result.coefficient = proved_coefficient(plan);
  return result;
}

// Selects a candidate of a plan for which has_long_chain() is true.
void select_from_long_chain(const Plan& plan, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                            const DeviceScalars& scalars, DeviceSelection* selection,
                            const DeviceReporting& reporting) {
  cuda::select_by_norms(queue, a, b, scalars, norm_candidates(plan), selection, reporting);
}

SharedSteps::SharedSteps(const Plan& plan, const Queue& queue, const DeviceSelection* selection)
    : queue_(&queue) {
  const auto shared = shared_candidates(plan);
  for (const Candidate& candidate : shared) rules_.push_back(candidate.program.split_a);
  selected_ = {.selection = selection,
               .first = static_cast<std::int32_t>(shared.data() - plan.candidates.data()),
               .least = rules_.front().slices,
               .most = rules_.back().slices};
}

void SharedSteps::split(std::span<const DeviceSplit> splits) const {
  cuda::split_selected(*queue_, splits, rules_, selected_);
}

void SharedSteps::multiply(const Schedule& schedule, const Slices& a, const Slices& b,
                           const Accumulators& sums) const {
  cuda::multiply_selected(*queue_, schedule, a, b, sums, selected_);
}

void SharedSteps::recombine(const Accumulators& sums, const DeviceTile& tile) const {
  cuda::recombine_selected(*queue_, sums, tile, selected_);
}

// One batch item while its steps are put into the queue, and a candidate that may multiply it.
struct Item {
  ItemSide a;
  ItemSide b;
  DeviceSelection* selection = nullptr;
  bool selected_ahead = false;  // true: ranges are found and the selection is made before the first split
  bool split_ahead = false;  // true: the step that finds the ranges also makes the first candidate's slices
  int candidate = 0;
  DeviceBlockMemory block;               // memory of the candidate's products
  std::optional<DeviceChecked> checked;  // additional steps of a checked candidate
  std::optional<SharedSteps> shared;  // steps of candidates that share kernels; `candidate` is their last one
  std::optional<UnfinishedTile>* unfinished = nullptr;  // keeps the candidate's last tile, if not nullptr
};

class ItemSteps {
 public:
  ItemSteps(const Plan& plan, const DeviceOperands& operands, const Queue& queue, const Blocking& blocking)
      : plan_(plan), queue_(queue), blocking_(blocking), operands_(operands), c_(operands.c),
        scalars_(operands.scalars) {}

  // Puts the steps of a batch item into the queue. The steps of all candidates are put there, because the
  // device selects the candidate; kernels of candidates that are not selected return at once.
  void multiply(std::int64_t index, Workspace workspace) const {
    Item item = take_item(index, workspace);
    if (is_ozaki1(plan_)) return multiply_ozaki1(item, workspace);
    select_ahead(item, workspace);
    if (sums_exactly(plan_)) {
      constexpr std::int32_t only_candidate = 0;
      cuda::multiply_exactly(queue_, tile_of(item, all_of_c(), only_candidate));
      finish(item);
    } else {
      multiply_candidates(item, workspace);
    }
    if (!item.selected_ahead && operands_.report != nullptr)
      select(item);  // only for the report, since the only candidate has run already
  }

 private:
  const Candidate& first_candidate() const { return plan_.candidates.front(); }
  const Candidate& candidate_of(const Item& item) const {
    return plan_.candidates[static_cast<std::size_t>(item.candidate)];
  }
  ResultBlock all_of_c() const { return {0, 0, c_.rows, c_.columns}; }

  Item take_item(std::int64_t index, Workspace& workspace) const {
    const DeviceItemMemory memory = lay_out_item(plan_, workspace);
    const Program& program = first_candidate().program;
    Item item;
    const auto found = [](VectorRange* ranges, VectorNorm* norms, VectorMagnitudes* magnitudes) {
      DeviceSide side;
      side.ranges = ranges;
      side.norms = norms;
      side.magnitudes = magnitudes;
      return side;
    };
    item.a = item_side(operands_.a, index, usable(operands_.prepared_a, program.split_a, index),
                       found(memory.ranges_a, memory.norms_a, memory.magnitudes_a));
    item.b = item_side(operands_.b, index, usable(operands_.prepared_b, program.split_b, index),
                       found(memory.ranges_b, memory.norms_b, memory.magnitudes_b));
    item.selection = memory.selection;
    return item;
  }

  // True if the plan's only program is valid for exponents up to a limit. C becomes NaN if operands exceed
  // the limit.
  bool is_limited_by_exponent() const { return first_candidate().acceptance.exponent < Acceptance::any; }

  // Finds ranges and selects a candidate before any split. This is needed if a kernel reads the selection, or
  // if ranges and split have different vectors. Otherwise does nothing, and the split finds the ranges later.
  void select_ahead(Item& item, const Workspace& workspace) const {
    item.selected_ahead = plan_.candidates.size() > 1 || scalars_.on_device() || is_limited_by_exponent() ||
                          plan_.is_checked() || sums_exactly(plan_) ||
                          first_candidate().program.multiplies_elements();
    if (!item.selected_ahead) return;
    item.split_ahead = first_candidate().acceptance.by_norms() &&
                       try_split_by_norms(item, proved_coefficient(plan_), workspace);
    if (!item.split_ahead) find_ranges(item);
    select(item);
  }

  // Puts the steps of all candidates into the queue.
  void multiply_candidates(const Item& item, const Workspace& workspace) const {
    const auto candidates = product_candidates(plan_);
    std::optional<UnfinishedTile> unfinished;
    const auto shared = static_cast<int>(shared_candidates(plan_).size());
    const int separate = static_cast<int>(candidates.size()) - shared;
    for (int c = 0; c < separate && !candidates[c].checked; ++c) {
      Item product = with_candidate(item, c, workspace);
      if (c == 0 && recombines_last()) product.unfinished = &unfinished;
      multiply_blocks(product);
    }
    if (shared > 0) multiply_blocks(with_shared(item, workspace));
    if (plan_.is_checked()) multiply_checked(item, workspace);
    if (item.selected_ahead) finish(item);
    if (unfinished) recombine(queue_, first_candidate(), *unfinished);
  }

  // True if the first candidate's last recombination comes after the kernels of all other candidates. These
  // exit early while its products still run. That gains nothing if the recombination does not overlap the
  // kernels before it.
  bool recombines_last() const {
    return c_.type == ElementType::f64 && !plan_.is_checked() &&
           first_candidate().program.recombination == Recombination::residues;
  }

  // Recombines the tile that the item keeps, since the next kernels write to its sums or scales.
  void finish_tile(const Item& item) const {
    if (item.unfinished == nullptr || !*item.unfinished) return;
    recombine(queue_, candidate_of(item), **item.unfinished);
    item.unfinished->reset();
  }

  void find_ranges(const Item& item) const {
    const DeviceSide a = side_without_ranges(item.a);
    const DeviceSide b = side_without_ranges(item.b);
    if (first_candidate().acceptance.by_norms()) {
      cuda::find_norms(queue_, a, b, scalars_);
    } else if (needs_norms(plan_)) {
      cuda::find_scaling_norms(queue_, a, b, scalars_);
    } else {
      cuda::find_ranges(queue_, a, b, scalars_);
    }
  }

  void select(const Item& item) const {
    const DeviceReporting reporting{is_ozaki1(plan_) ? nullptr : operands_.report,
                                    begins_with_selection(plan_)};
    if (has_long_chain(plan_))
      return select_from_long_chain(plan_, queue_, item.a.side, item.b.side, scalars_, item.selection,
                                    reporting);
    cuda::select(queue_, item.a.side, item.b.side, scalars_, candidates_on_device(plan_), item.selection,
                 reporting);
  }

  // Finds norms and splits whole operands for the first candidate in one step. (Norms prove the first
  // candidate most often.) Returns false and does nothing if the engine has no such step for these operands.
  bool try_split_by_norms(Item item, double coefficient, Workspace workspace) const {
    if (blocking_.m < c_.rows || blocking_.n < c_.columns) return false;
    take_block(item, workspace);
    std::vector<DeviceSplit> splits;
    splits.reserve(2);
    plan_split_b(item, all_of_c(), splits);
    plan_split_a(item, all_of_c(), splits);
    const auto finds_norms = [&](const DeviceSplit& split) { return cuda::finds_norms(split); };
    if (splits.empty() || !std::all_of(splits.begin(), splits.end(), finds_norms)) return false;
    cuda::split_by_norms(queue_, splits, scalars_, coefficient, item.selection);
    return true;
  }

  const DeviceFit* fit_of(const Item& item) const {
    return first_candidate().scheme->fits_residuals() ? &item.selection->fit : nullptr;
  }

  // Returns the condition of a candidate's kernels: they exit early unless the candidate is selected. The
  // selection precedes the first candidate's products, so that kernels of later candidates may read it while
  // the preceding kernel runs.
  DeviceCondition on_candidate(const Item& item, std::int32_t candidate) const {
    if (item.checked) return item.checked->condition();
    return {item.selected_ahead ? item.selection : nullptr, candidate, item.selected_ahead && candidate > 0};
  }

  // Puts the steps for all selections except emulations into the queue: beta C if alpha is 0, the native
  // product if native is selected, and NaN if no candidate accepts the item.
  void finish(const Item& item) const {
    if (scalars_.on_device())
      cuda::scale(queue_, c_, item.a.side.item, scalars_, {item.selection, DeviceSelection::scaled});
    const bool can_fail = is_limited_by_exponent() || is_ozaki1(plan_);
    const bool native_follows = plan_.candidates.back().scheme == nullptr;
    const auto native = static_cast<std::int32_t>(plan_.candidates.size()) - 1;
    if (native_follows || can_fail)
      cuda::multiply_unsliced(queue_, tile_of(item, all_of_c(), can_fail ? DeviceSelection::none : native));
  }

  void multiply_ozaki1(Item& item, const Workspace& workspace) const {
    item.selected_ahead = true;
    find_ranges(item);
    select(item);
    multiply_by_ozaki1({.plan = plan_,
                        .blocking = blocking_,
                        .queue = queue_,
                        .a = item.a.side,
                        .b = item.b.side,
                        .c = c_,
                        .scalars = scalars_,
                        .selection = item.selection,
                        .report = operands_.report},
                       workspace);
    finish(item);
  }

  // Returns the item with another candidate. All candidates use the same memory. Ranges of a prepared operand
  // have the scales of the first candidate. Another candidate copies these ranges, and sets its scales in the
  // copy.
  Item with_candidate(Item item, int candidate, Workspace workspace) const {
    item.candidate = candidate;
    if (candidate > 0) {
      use_matrix(item.a);
      use_matrix(item.b);
    }
    take_block(item, workspace);
    if (candidate_of(item).checked)
      item.checked.emplace(plan_, candidate, blocking_, queue_, item.a.side, item.b.side, item.selection,
                           workspace);
    return item;
  }

  // Returns the item with all candidates that share kernels.
  Item with_shared(const Item& item, const Workspace& workspace) const {
    Item shared = with_candidate(item, static_cast<int>(product_candidates(plan_).size()) - 1, workspace);
    shared.shared.emplace(plan_, queue_, item.selection);
    return shared;
  }

  // Computes C block after block. If elements of a block are open, the next checked candidate may compute the
  // block again. The elements that the last candidate leaves open are recomputed.
  void multiply_checked(const Item& item, const Workspace& workspace) const {
    std::vector<Item> checked_items;
    Item source = item;
    const auto candidates = product_candidates(plan_);
    for (int c = 0; c < static_cast<int>(candidates.size()); ++c) {
      if (!candidates[c].checked) continue;
      const Item& checked_item = checked_items.emplace_back(with_candidate(source, c, workspace));
      source.a = checked_item.a;  // use_matrix() then copies ranges only once
      source.b = checked_item.b;
    }
    const DeviceChecked& first_checked = *checked_items.front().checked;
    first_checked.choose(operands_.report);
    for_each_block(blocking_, c_.rows, c_.columns, [&](const ResultBlock& block) {
      first_checked.begin();
      for (Item& checked_item : checked_items) multiply_checked_block(checked_item, block);
      first_checked.recompute(tile_of(item, block, item.candidate), block, operands_.report);
    });
  }

  void multiply_checked_block(Item& item, const ResultBlock& block) const {
    const Blocking divided = candidate_blocking(plan_, candidate_of(item), blocking_);
    for_each_block(divided, block.rows, block.columns, [&](const ResultBlock& inner) {
      multiply_inner_block(item, block.in_matrix(inner), block);
    });
    item.checked->advance(block);
  }

  // Multiplies a block of C. `checked_block`: the larger block that contains the block. The open elements of
  // the larger block are recomputed together.
  void multiply_inner_block(Item& item, const ResultBlock& block, const ResultBlock& checked_block) const {
    const std::int64_t parts = plan_.problem.parts();
    std::vector<DeviceSplit> splits;
    splits.reserve(2);
    const Slices b = plan_split_b(item, block, splits);
    const Slices a = plan_split_a(item, block, splits);
    item.checked->split_columns(parts * block.column, parts * block.columns);
    item.checked->split_rows(block.row, block.rows);
    if (!splits.empty()) split(item, splits);
    item.checked->find_rounding_errors(block);
    multiply_tiles(item, a, b, block, checked_block);
  }

  // Takes the memory of a block for the item's candidate. Every candidate uses the same memory.
  void take_block(Item& item, Workspace& workspace) const {
    const std::size_t block_bytes = max_block_bytes(plan_, blocking_);
    Workspace memory(workspace.take(block_bytes), block_bytes);
    const Candidate& candidate = candidate_of(item);
    item.block = lay_out_block(plan_, candidate, candidate_blocking(plan_, candidate, blocking_), memory);
  }

  // Makes the side use its matrix instead of prepared slices. Copies the ranges, so that their scales may be
  // changed.
  void use_matrix(ItemSide& side) const {
    if (side.prepared == nullptr) return;
    cuda::copy_on_device(queue_, side.ranges, side.side.ranges,
                         static_cast<std::size_t>(side.side.matrix.vectors()) * sizeof(VectorRange));
    side.side.ranges = side.ranges;
    side.prepared = nullptr;
  }

  // Returns the slices of some vectors of one side. If they are not prepared, adds the split that will make
  // them to `splits`.
  Slices plan_split(const Item& item, const ItemSide& side, const SplitRule& rule, const Slices& memory,
                    const Interval& vectors, std::vector<DeviceSplit>& splits) const {
    if (side.prepared != nullptr && side.prepared->slices.data != nullptr)
      return side.prepared->slices.block(vectors.first, vectors.count);
    Slices slices = memory;
    slices.vectors = candidate_of(item).program.extent_of_slices(vectors.count);
    splits.push_back({.side = side.side,
                      .first = vectors.first,
                      .rule = &rule,
                      .slices = slices,
                      .vectors = vectors.count,
                      .ranges_known = item.selected_ahead,
                      .fit = fit_of(item)});
    return slices;
  }
  Slices plan_split_a(const Item& item, const ResultBlock& block, std::vector<DeviceSplit>& splits) const {
    return plan_split(item, item.a, candidate_of(item).program.split_a, item.block.a, {block.row, block.rows},
                      splits);
  }
  Slices plan_split_b(const Item& item, const ResultBlock& block, std::vector<DeviceSplit>& splits) const {
    const std::int64_t per_column = vectors_per_column(plan_, candidate_of(item));
    return plan_split(item, item.b, candidate_of(item).program.split_b, item.block.b,
                      {per_column * block.column, per_column * block.columns}, splits);
  }

  // Splits and multiplies block after block by the item's candidate, which is not checked.
  void multiply_blocks(Item item) const {
    const bool is_already_split = item.candidate == 0 && item.split_ahead;
    const Blocking blocking = candidate_blocking(plan_, candidate_of(item), blocking_);
    Slices a;
    Slices b;
    for_each_block(blocking, c_.rows, c_.columns, [&](const ResultBlock& block) {
      finish_tile(item);
      std::vector<DeviceSplit> splits;
      splits.reserve(2);
      if (needs_split_of_columns(block, blocking, c_.rows)) b = plan_split_b(item, block, splits);
      if (needs_split_of_rows(block, blocking, c_.rows)) a = plan_split_a(item, block, splits);
      if (!splits.empty() && !is_already_split) split(item, splits);
      multiply_tiles(item, a, b, block, block);
    });
  }

  void split(const Item& item, std::span<const DeviceSplit> splits) const {
    if (item.shared) return item.shared->split(splits);
    cuda::split(queue_, splits, on_candidate(item, item.candidate));
  }

  void multiply_tile(const Item& item, const Slices& a, const Slices& b, const Accumulators& sums) const {
    const Schedule schedule = schedule_to_fit(candidate_of(item));
    if (item.shared) return item.shared->multiply(schedule, a, b, sums);
    cuda::multiply(queue_, schedule, a, b, sums, item.block.scratch, fit_of(item),
                   on_candidate(item, item.candidate));
  }

  // Multiplies and recombines the tiles of `block`. `checked_block`: the block or a larger one that contains
  // it; its open elements are recomputed together.
  void multiply_tiles(Item& item, const Slices& a, const Slices& b, const ResultBlock& block,
                      const ResultBlock& checked_block) const {
    const Candidate& candidate = candidate_of(item);
    const std::int64_t parts = plan_.problem.parts();
    const std::int64_t per_column = vectors_per_column(plan_, candidate);
    for_each_block(item.block.tiles, block.rows, block.columns, [&](const ResultBlock& inner) {
      const Interval rows = slices_of(candidate, {inner.row, inner.rows});
      const Interval columns = slices_of(candidate, {per_column * inner.column, per_column * inner.columns});
      Accumulators sums = item.block.sums;
      sums.rows = round_up(rows.count, sums_multiple);
      sums.columns = round_up(columns.count, sums_multiple);
      const DeviceTile tile = tile_of(item, block.in_matrix(inner), item.candidate);
      if (item.checked) {
        item.checked->multiply_magnitudes(inner.row, inner.rows, parts * inner.column, parts * inner.columns,
                                          item.block.scratch);
      }
      finish_tile(item);
      multiply_tile(item, a.block(rows.first, rows.count), b.block(columns.first, columns.count), sums);
      if (item.checked) {
        item.checked->recombine(sums, tile, checked_block);
      } else if (item.shared) {
        item.shared->recombine(sums, tile);
      } else if (item.unfinished != nullptr) {
        *item.unfinished = {sums, tile};
      } else {
        recombine(queue_, candidate, {sums, tile});
      }
    });
  }

  DeviceTile tile_of(const Item& item, const ResultBlock& block, std::int32_t candidate) const {
    return {.a = item.a.side,
            .b = item.b.side,
            .c = c_,
            .item = item.a.side.item,
            .first_row = block.row,
            .first_column = block.column,
            .rows = block.rows,
            .columns = block.columns,
            .scalars = scalars_,
            .condition = on_candidate(item, candidate)};
  }

  const Plan& plan_;
  const Queue& queue_;
  const Blocking& blocking_;
  const DeviceOperands& operands_;
  const DeviceMatrix& c_;
  const DeviceScalars& scalars_;
};

}  // namespace

void multiply_items(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace) {
  const ItemSteps steps(plan, operands, queue, blocking);
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item) steps.multiply(item, workspace);
}

}  // namespace kintsugi::core
