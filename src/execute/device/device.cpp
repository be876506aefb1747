#include "execute/device/device.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "engines/device_engine.hpp"
#include "execute/allocate.hpp"
#include "execute/device/caller.hpp"
#include "execute/device/checked.hpp"
#include "execute/device/fused.hpp"
#include "execute/device/matrix.hpp"
#include "execute/device/memory.hpp"
#include "execute/device/native.hpp"
#include "execute/device/prepare.hpp"
#include "execute/device/selection.hpp"
#include "planner/device_error_free.hpp"
#include "planner/workspace/device.hpp"
#include "planner/workspace/fused.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

// One call on its way through the queue.
class DeviceCall {
 public:
  DeviceCall(const Plan& plan, const Operands& operands, const Queue& queue, const Blocking& blocking)
      : plan_(plan), engine_(*plan.engine->device()), queue_(queue), blocking_(blocking),
        a_(operand(Side::a, operands.a, operands.prepared_a)),
        b_(operand(Side::b, operands.b, operands.prepared_b)), c_(device_result(plan.problem, operands.c)),
        scalars_(scalars_of(operands)), report_(operands.device_report),
        prepared_a_(device_part(operands.prepared_a)), prepared_b_(device_part(operands.prepared_b)) {}

  void scale_all() const {
    for (std::int64_t entry = 0; entry < plan_.problem.batch_count; ++entry)
      engine_.scale(queue_, c_, entry, scalars_, {});
  }

  void multiply_natively(const Workspace& workspace) const {
    core::multiply_natively({.plan = plan_,
                             .queue = queue_,
                             .blocking = blocking_,
                             .a = a_,
                             .b = b_,
                             .c = c_,
                             .storage_a = storage_of(Side::a, prepared_a_),
                             .storage_b = storage_of(Side::b, prepared_b_),
                             .scalars = scalars_},
                            workspace);
  }

  void multiply_all(const Workspace& workspace) {
    if (is_fused(plan_)) {
      return multiply_fused(plan_, {a_, b_, c_, scalars_, prepared_a_, prepared_b_, report_}, queue_,
                            blocking_, workspace);
    }
    for (std::int64_t entry = 0; entry < plan_.problem.batch_count; ++entry) multiply_entry(entry, workspace);
  }

 private:
  // What a step works on, of one entry.
  struct Entry {
    DeviceSide a;
    DeviceSide b;
    VectorRange* ranges_a = nullptr;  // whose scales are not a prepared operand's
    VectorRange* ranges_b = nullptr;
    DeviceChoice* choice = nullptr;
    const DevicePrepared::Entry* prepared_a = nullptr;  // whose slices are those of the first candidate
    const DevicePrepared::Entry* prepared_b = nullptr;
    bool looked_at = false;    // ranges and choice are there before the first split
    bool split_ahead = false;  // and so are the first candidate's slices
    // Of the candidate at work.
    DeviceBlockMemory block;
    std::optional<DeviceChecked> checked;
  };

  DeviceMatrix operand(Side side, const void* data, const Prepared* prepared) const {
    return prepared != nullptr ? prepared->device->matrix : device_operand(plan_.problem, side, data);
  }
  static const DevicePrepared* device_part(const Prepared* prepared) {
    return prepared == nullptr ? nullptr : prepared->device.get();
  }
  static DeviceScalars scalars_of(const Operands& operands) {
    // cuBLAS takes -0 for a number, and reads C.
    const std::complex<double> beta = operands.beta.is_zero() ? 0 : operands.beta.value();
    return {operands.alpha.value(), beta, operands.device_alpha, operands.device_beta};
  }

  const Candidate& first() const { return plan_.candidates.front(); }

  const DevicePrepared::Entry* usable(const DevicePrepared* prepared, const SplitRule& rule,
                                      std::int64_t entry) const {
    if (prepared == nullptr || prepared->entries.empty() || !(prepared->rule == rule)) return nullptr;
    return &prepared->entries[prepared->entries.size() == 1 ? 0 : static_cast<std::size_t>(entry)];
  }

  static DeviceSide side_of(const DeviceMatrix& matrix, std::int64_t entry,
                            const DevicePrepared::Entry* prepared, VectorRange* ranges, VectorNorm* norms) {
    if (prepared == nullptr) return {matrix, entry, ranges, 1, norms};
    return {matrix, entry, prepared->ranges, 1, prepared->norms, prepared->summary};
  }

  void take_sides(Entry& entry, std::int64_t index, Workspace& workspace) const {
    const DeviceItemMemory memory = lay_out_item(plan_, workspace);
    entry.prepared_a = usable(prepared_a_, first().program.split_a, index);
    entry.prepared_b = usable(prepared_b_, first().program.split_b, index);
    entry.ranges_a = memory.ranges_a;
    entry.ranges_b = memory.ranges_b;
    entry.a = side_of(a_, index, entry.prepared_a, memory.ranges_a, memory.norms_a);
    entry.b = side_of(b_, index, entry.prepared_b, memory.ranges_b, memory.norms_b);
    entry.choice = memory.choice;
  }

  // Whether C becomes NaN where exponents exceed those that the only program is fitted to.
  bool is_limited_by_exponent() const { return first().acceptance.exponent < Acceptance::any; }

  // Where a choice is to be made before anything is split, or ranges are not those of what is split. Ranges
  // of a prepared operand are there.
  void look_at(Entry& entry, const Workspace& workspace) const {
    const DeviceCandidates choices = candidates_on_device(plan_);
    entry.looked_at = choices.count > 1 || scalars_.on_device() || is_limited_by_exponent() ||
                      plan_.is_checked() || sums_exactly(plan_) || first().program.multiplies_entries();
    if (!entry.looked_at) return;
    entry.split_ahead = asks_for_norms(plan_) && splits_by_norms(entry, choices.coefficient, workspace);
    if (!entry.split_ahead) {
      const DeviceSide a = entry.prepared_a == nullptr ? entry.a : DeviceSide{};
      const DeviceSide b = entry.prepared_b == nullptr ? entry.b : DeviceSide{};
      engine_.find_ranges(queue_, a, b, scalars_);
      if (asks_for_norms(plan_)) engine_.find_norms(queue_, a, b, scalars_);
    }
    engine_.choose(queue_, entry.a, entry.b, scalars_, choices, entry.choice, reporting());
  }

  // Splits whole operands for the first candidate while their norms are found, if the engine can: most often
  // they prove it.
  bool splits_by_norms(Entry entry, double coefficient, Workspace workspace) const {
    if (blocking_.m < c_.rows || blocking_.n < c_.columns) return false;
    take_block(entry, 0, workspace);
    const Program& program = first().program;
    std::vector<DeviceSplit> splits;
    splits.reserve(2);
    plan_split(entry.b, entry.prepared_b, program.split_b, entry.block.b, 0,
               columns_each(plan_, first()) * c_.columns, entry, splits);
    plan_split(entry.a, entry.prepared_a, program.split_a, entry.block.a, 0, c_.rows, entry, splits);
    const auto can = [&](const DeviceSplit& split) { return engine_.finds_norms(split); };
    if (splits.empty() || !std::all_of(splits.begin(), splits.end(), can)) return false;
    engine_.split_by_norms(queue_, splits, scalars_, coefficient, entry.choice);
    return true;
  }

  DeviceReporting reporting() const { return {report_, begins_with_choice(plan_)}; }

  const DeviceFit* fit_of(const Entry& entry) const {
    return first().scheme->fits_residuals() ? &entry.choice->fit : nullptr;
  }

  DeviceCondition on_candidate(const Entry& entry, std::int32_t candidate) const {
    return {entry.looked_at ? entry.choice : nullptr, candidate};
  }

  // ranges, choice, split, multiply, recombine; then what the other choices ask for.
  void multiply_entry(std::int64_t index, Workspace workspace) const {
    if (is_error_free(plan_)) return multiply_entry_without_error(index, workspace);
    Entry entry;
    take_sides(entry, index, workspace);
    look_at(entry, workspace);
    if (sums_exactly(plan_)) {
      engine_.multiply_exactly(queue_, tile_of(entry, 0, 0, c_.rows, c_.columns, 0), {}, report_);
    } else {
      for (int r = 0; r < static_cast<int>(product_candidates(plan_).size()); ++r)
        multiply_candidate(entry, r, workspace);
    }
    if (!entry.looked_at) {
      if (report_ != nullptr)
        engine_.choose(queue_, entry.a, entry.b, scalars_, candidates_on_device(plan_), entry.choice,
                       reporting());
      return;
    }
    if (scalars_.on_device())
      engine_.scale(queue_, c_, index, scalars_, {entry.choice, DeviceChoice::scaled});
    const bool fails = is_limited_by_exponent();
    const bool native_follows = plan_.candidates.back().scheme == nullptr;
    const auto last = static_cast<std::int32_t>(plan_.candidates.size()) - 1;
    if (native_follows || fails)
      engine_.multiply_plainly(queue_,
                               tile_of(entry, 0, 0, c_.rows, c_.columns, fails ? DeviceChoice::none : last));
  }

  // Memory of one candidate in the place of the others'. Ranges of a prepared operand have its own scales:
  // those of another candidate are put into a copy.
  void multiply_candidate(Entry entry, int r, Workspace workspace) const {
    const Candidate& candidate = product_candidates(plan_)[static_cast<std::size_t>(r)];
    if (r > 0) {
      leave_prepared(entry.a, entry.prepared_a, entry.ranges_a);
      leave_prepared(entry.b, entry.prepared_b, entry.ranges_b);
    }
    take_block(entry, r, workspace);
    if (candidate.checked) {
      entry.checked.emplace(plan_, blocking_, checked_tile_size(plan_, blocking_), queue_, entry.a, entry.b,
                            DeviceCondition{entry.choice, r}, workspace);
    }
    multiply_blocks(entry, r);
  }

  void take_block(Entry& entry, int r, Workspace& workspace) const {
    const std::size_t most = most_block_bytes(plan_, blocking_);
    Workspace memory(workspace.take(most), most);
    entry.block =
        lay_out_block(plan_, product_candidates(plan_)[static_cast<std::size_t>(r)], blocking_, memory);
  }

  void leave_prepared(DeviceSide& side, const DevicePrepared::Entry*& prepared, VectorRange* ranges) const {
    if (prepared == nullptr) return;
    engine_.copy_on_device(queue_, ranges, side.ranges,
                           static_cast<std::size_t>(side.matrix.vectors()) * sizeof(VectorRange));
    side.ranges = ranges;
    prepared = nullptr;
  }

  void multiply_entry_without_error(std::int64_t index, Workspace workspace) const {
    Entry entry;
    take_sides(entry, index, workspace);
    engine_.find_ranges(queue_, entry.prepared_a == nullptr ? entry.a : DeviceSide{},
                        entry.prepared_b == nullptr ? entry.b : DeviceSide{}, scalars_);
    engine_.choose(queue_, entry.a, entry.b, scalars_, candidates_on_device(plan_), entry.choice, {});
    entry.looked_at = true;
    multiply_error_free({plan_, blocking_, queue_, entry.a, entry.b, c_, scalars_, entry.choice, report_},
                        workspace);
    if (scalars_.on_device())
      engine_.scale(queue_, c_, index, scalars_, {entry.choice, DeviceChoice::scaled});
    engine_.multiply_plainly(queue_, tile_of(entry, 0, 0, c_.rows, c_.columns, DeviceChoice::none));
  }

  // Vectors of one side from `first` on, of which there are `vectors`, as slices; nothing is added to
  // `splits` where they are prepared. Slices of a prepared operand are those of the program as planned,
  // whatever the other operand asks for: where that may be another one, it has none.
  Slices plan_split(const DeviceSide& side, const DevicePrepared::Entry* prepared, const SplitRule& rule,
                    const Slices& memory, std::int64_t first, std::int64_t vectors, const Entry& entry,
                    std::vector<DeviceSplit>& splits) const {
    if (prepared != nullptr && prepared->slices.data != nullptr)
      return prepared->slices.block(first, vectors);
    Slices slices = memory;
    slices.vectors = vectors;
    splits.push_back({side, first, &rule, slices, entry.looked_at, fit_of(entry)});
    return slices;
  }

  void multiply_blocks(Entry& entry, int r) const {
    const Candidate& candidate = plan_.candidates[static_cast<std::size_t>(r)];
    const std::int64_t parts = plan_.problem.parts();
    const std::int64_t each = columns_each(plan_, candidate);
    if (entry.checked) entry.checked->find_margins();
    Slices a;
    for (std::int64_t j = 0; j < c_.columns; j += blocking_.n) {
      const std::int64_t columns = std::min(blocking_.n, c_.columns - j);
      std::vector<DeviceSplit> splits;
      splits.reserve(2);
      const Slices b = plan_split(entry.b, entry.prepared_b, candidate.program.split_b, entry.block.b,
                                  each * j, each * columns, entry, splits);
      if (entry.checked) entry.checked->split_columns(parts * j, parts * columns);
      for (std::int64_t i = 0; i < c_.rows; i += blocking_.m) {
        const std::int64_t rows = std::min(blocking_.m, c_.rows - i);
        if (j == 0 || blocking_.m < c_.rows) {
          a = plan_split(entry.a, entry.prepared_a, candidate.program.split_a, entry.block.a, i, rows, entry,
                         splits);
          if (entry.checked) entry.checked->split_rows(i, rows);
        }
        const bool is_split = r == 0 && entry.split_ahead;
        if (!splits.empty() && !is_split) engine_.split(queue_, splits, on_candidate(entry, r));
        splits.clear();
        multiply_tiles(entry, r, a, b, i, j, rows, columns);
      }
    }
  }

  // The program's, whose fitted weights are the device's to know.
  static Schedule schedule_of(const Candidate& candidate) {
    Schedule schedule = candidate.program.schedule;
    for (const int group : candidate.scheme->fitted_groups) schedule.group_exponents[group] = fitted_exponent;
    return schedule;
  }

  void multiply_tiles(Entry& entry, int r, const Slices& a, const Slices& b, std::int64_t first_row,
                      std::int64_t first_column, std::int64_t rows, std::int64_t columns) const {
    const Candidate& candidate = plan_.candidates[static_cast<std::size_t>(r)];
    const std::int64_t parts = plan_.problem.parts();
    const std::int64_t each = columns_each(plan_, candidate);
    for (std::int64_t j = 0; j < columns; j += tile_columns(plan_, candidate)) {
      const std::int64_t tile_n = std::min(tile_columns(plan_, candidate), columns - j);
      for (std::int64_t i = 0; i < rows; i += engine_.tile()) {
        const std::int64_t tile_m = std::min(engine_.tile(), rows - i);
        Accumulators sums = entry.block.sums;
        sums.rows = round_up(tile_m, sums_multiple);
        sums.columns = round_up(each * tile_n, sums_multiple);
        const DeviceTile tile = tile_of(entry, first_row + i, first_column + j, tile_m, tile_n, r);
        if (entry.checked)
          entry.checked->multiply_magnitudes(i, tile_m, parts * j, parts * tile_n, entry.block.scratch);
        engine_.multiply(queue_, schedule_of(candidate), a.block(i, tile_m), b.block(each * j, each * tile_n),
                         sums, entry.block.scratch, fit_of(entry), on_candidate(entry, r));
        if (entry.checked) {
          entry.checked->recombine(sums, tile, report_);
        } else {
          recombine(candidate, sums, tile);
        }
      }
    }
  }

  DeviceTile tile_of(const Entry& entry, std::int64_t first_row, std::int64_t first_column, std::int64_t rows,
                     std::int64_t columns, std::int32_t candidate) const {
    return {entry.a,      entry.b, c_,      entry.a.entry, first_row,
            first_column, rows,    columns, scalars_,      on_candidate(entry, candidate)};
  }

  void recombine(const Candidate& candidate, const Accumulators& sums, const DeviceTile& tile) const {
    if (candidate.program.recombination == Recombination::residues)
      return engine_.recombine_residues(queue_, sums, candidate.program.residue_system(), tile);
    const Schedule schedule = schedule_of(candidate);
    std::array<int, max_groups> exponents{};
    for (int g = 0; g < schedule.sums(); ++g) exponents[g] = schedule.sum_exponent(g);
    engine_.recombine_weighted(queue_, sums, {exponents.data(), static_cast<std::size_t>(sums.groups)}, tile);
  }

  OperandStorage storage_of(Side side, const DevicePrepared* prepared) const {
    return prepared != nullptr ? prepared->storage : operand_storage(plan_.problem, side);
  }

  const Plan& plan_;
  const DeviceEngine& engine_;
  Queue queue_;
  Blocking blocking_;
  DeviceMatrix a_, b_, c_;
  DeviceScalars scalars_;
  DeviceReport* report_;
  const DevicePrepared* prepared_a_;
  const DevicePrepared* prepared_b_;
};

void run(const Plan& plan, const Operands& operands, const Queue& queue, Report& report) {
  const bool own = operands.workspace == nullptr;
  DeviceBlock memory;
  if (own) {
    memory = allocate_workspace(plan, report.blocking, "the device's allocator",
                                [&](std::size_t bytes) { return DeviceBlock(plan, queue, bytes); });
  } else {
    check_workspace(plan, operands);
  }
  report.workspace_bytes = own ? memory.bytes() : plan.workspace_bytes;
  const Workspace workspace(own ? memory.pointer() : operands.workspace, report.workspace_bytes);
  DeviceCall call(plan, operands, queue, report.blocking);
  if (plan.is_native()) return call.multiply_natively(workspace);
  call.multiply_all(workspace);
}

}  // namespace

void execute_on_device(const Plan& plan, const Operands& operands, Report& report) {
  const DeviceEngine& engine = *plan.engine->device();
  const Problem& problem = plan.problem;
  const Queue queue = queue_of(plan, operands);
  check_caller(plan, operands, queue);
  engine.prepare();
  const bool empty = problem.m == 0 || problem.n == 0 || problem.batch_count == 0;
  const bool scales = problem.k == 0 || (!problem.device_scalars && operands.alpha.is_zero());
  const bool written_whole = !empty && !scales && begins_with_choice(plan);
  if (operands.device_report != nullptr && !written_whole)
    engine.clear(queue, operands.device_report, sizeof(DeviceReport));
  if (empty) return;
  report.adapted.k = problem.products();  // of what the device may find
  if (scales) {
    report.entries_scaled = problem.batch_count;
    DeviceCall(plan, operands, queue, report.blocking).scale_all();
  } else {
    if (plan.is_native()) report.entries[0] = problem.batch_count;
    run(plan, operands, queue, report);
  }
  if (queue.kind == QueueKind::host) engine.synchronize(queue);
}

}  // namespace kintsugi::core
