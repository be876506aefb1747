#include "execute/execute.hpp"

#include <algorithm>
#include <optional>

#include "arith/complex.hpp"
#include "arith/double_double.hpp"
#include "base/threads.hpp"
#include "execute/device/device.hpp"
#include "execute/device/offload/offload.hpp"
#include "execute/device/prepare.hpp"
#include "execute/device/stage.hpp"
#include "execute/host/acceptance.hpp"
#include "execute/host/checked.hpp"
#include "execute/host/native.hpp"
#include "execute/host/ozaki1.hpp"
#include "execute/host/residue_scales.hpp"
#include "execute/host/tiles.hpp"
#include "recombine/exact_sums.hpp"
#include "recombine/residues.hpp"
#include "recombine/special_values.hpp"
#include "recombine/weighted.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

// Computes beta * C. beta = 1 leaves C bitwise unchanged.
template <class T>
void scale_result(const MatrixView<T>& c, T beta) {
  if (beta == T(1)) return;
  for (std::int64_t j = 0; j < c.columns; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i) c(i, j) = beta == T(0) ? T(0) : scaled_element(beta, c(i, j));
  }
}

// Finds the ranges of a side. The exponents do not depend on the candidate, so `rule` may be the rule of any
// candidate. set_program() later sets the scales for the selected candidate.
template <class T>
void find_side_ranges(SideOf<T>& side, const SplitRule& rule, int threads) {
  if (side.prepared != nullptr && !side.prepared->ranges.empty()) {
    std::copy(side.prepared->ranges.begin(), side.prepared->ranges.end(), side.ranges.begin());
  } else {
    find_ranges(side.view, rule, side.ranges, threads);
  }
}

template <class T>
void recombine(const Program& program, const Accumulators& sums, std::span<const VectorRange> rows,
               std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c, int threads) {
  if (program.recombination == Recombination::residues)
    return recombine_residues(sums, program.residue_system(), rows, columns, alpha, beta, c, threads);
  if constexpr (!is_double_double<T>) {  // no scheme with weighted sums takes double-double
    std::array<int, max_groups> exponents{};
    for (int g = 0; g < program.schedule.sums(); ++g) exponents[g] = program.schedule.sum_exponent(g);
    recombine_weighted(sums, exponents, rows, columns, alpha, beta, c, threads);
  }
}

// Runs split, multiply and recombine for each block of C. If `grid` is given, elements that it does not
// accept stay unchanged.
template <class T>
void run_program(const Plan& plan, const Blocking& blocking, const Program& program, Accumulator accumulator,
                 SideOf<T>& a, SideOf<T>& b, const Operands& operands, const MatrixView<T>& c,
                 Workspace& workspace, Report& report, const GridElements* grid = nullptr) {
  set_program(program, a, b);
  set_residue_scales(plan, program, blocking, a, b, workspace);
  const BlockMemory memory = take_block(plan, program, blocking, a, b, workspace);
  const RefusedElements<T> refused(plan, blocking, grid, workspace);
  Accumulators sums = memory.sums;
  constexpr std::int64_t parts = parts_of<T>;
  const T alpha = scalar<T>(operands.alpha);
  const T beta = scalar<T>(operands.beta);
  Slices slices_a;
  Slices slices_b;
  for_each_block(blocking, c.rows, c.columns, [&](const ResultBlock& block) {
    if (needs_split_of_columns(block, blocking, c.rows))
      slices_b = split_vectors(b, {block.column, block.columns}, plan.threads);
    if (needs_split_of_rows(block, blocking, c.rows))
      slices_a = split_vectors(a, {block.row, block.rows}, plan.threads);
    sums.rows = block.rows;
    sums.columns = slices_b.vectors;
    plan.engine->host()->multiply({.schedule = &program.schedule,
                                   .a = slices_a,
                                   .b = slices_b,
                                   .sums = sums,
                                   .accumulator = accumulator,
                                   .scratch = memory.scratch,
                                   .threads = plan.threads});
    const Accumulators to_recombine =
        program.schedule.tiles.depth == 0
            ? sums
            : finish_tiled_sums(block, a, slices_a, b, slices_b, sums, plan.threads, report);
    const MatrixView<T> c_block = c.block(block.row, block.column, block.rows, block.columns);
    refused.save(block, c_block);
    recombine(program, to_recombine, a.ranges.subspan(block.row, block.rows),
              b.ranges.subspan(parts * block.column, parts * block.columns), alpha, beta, c_block,
              plan.threads);
    refused.restore(block, c_block);
  });
}

// Both sides of a batch item with their ranges, and the candidate that the ranges select.
template <class T>
struct ItemSelection {
  SideOf<T> a, b;
  RangeSummary summary_a, summary_b;
  std::size_t candidate = 0;
  Program program{};  // the candidate's program, adapted to the ranges; empty for the native product
  // Set if the grid of a reproducible product accepts only some elements. The selected candidate computes the
  // others.
  std::optional<GridElements> grid;
};

// Finds the ranges of both sides of a batch item and selects its candidate. The ranges take workspace.
template <class T>
ItemSelection<T> select_for_item(const Plan& plan, const Operands& operands, std::int64_t item,
                                 Workspace& workspace) {
  const Problem& problem = plan.problem;
  const Program& program = plan.widest_emulation()->program;
  const RangeMemory ranges = lay_out_ranges(plan, workspace);
  ItemSelection<T> selection;
  selection.a = {.view = view_of_a<T>(problem, operands.a, operands.prepared_a, item),
                 .ranges = ranges.rows,
                 .prepared = prepared_item(operands.prepared_a, item)};
  selection.b = {.view = view_of_b<T>(problem, operands.b, operands.prepared_b, item),
                 .ranges = ranges.columns,
                 .prepared = prepared_item(operands.prepared_b, item)};
  find_side_ranges(selection.a, program.split_a, plan.threads);
  find_side_ranges(selection.b, program.split_b, plan.threads);
  if (plan.request.is_reproducible()) {
    find_depths(selection.a.view, selection.a.ranges, plan.threads);
    find_depths(selection.b.view, selection.b.ranges, plan.threads);
    // Prepared slices are not used: their scales are different from the scales of a reproducible product.
    selection.a.prepared = nullptr;
    selection.b.prepared = nullptr;
  }
  selection.summary_a = summarize(selection.a.ranges);
  selection.summary_b = summarize(selection.b.ranges);
  selection.candidate = select_candidate(plan, selection.summary_a, selection.summary_b);
  if (begins_with_grid(plan) && selection.candidate > 0) {
    selection.grid.emplace(plan, ranges, lay_out_ranges(plan, workspace));
    if (!selection.grid->accept_any()) selection.grid.reset();
  }
  if (const Scheme* scheme = plan.candidates[selection.candidate].scheme) {
    selection.program = plan.candidates[selection.candidate].program;
    if (scheme->adapt != nullptr)
      scheme->adapt(selection.program, selection.summary_a, selection.summary_b, problem.products());
  }
  return selection;
}

template <class T>
void add_to_report(Report& report, const Plan& plan, const ItemSelection<T>& selection) {
  ++report.items[selection.candidate];
  const Candidate& candidate = plan.candidates[selection.candidate];
  const bool as_planned = selection.program.split_a == candidate.program.split_a &&
                          selection.program.split_b == candidate.program.split_b;
  if (candidate.scheme != nullptr && !as_planned) {
    report.set_adapted(candidate, selection.program, plan.problem.products());
  }
  if (!selection.summary_a.finite || !selection.summary_b.finite) ++report.items_with_special_values;
  report.ranges_known = true;
  report.dynamic_range_a = std::max(report.dynamic_range_a, selection.summary_a.dynamic_range);
  report.dynamic_range_b = std::max(report.dynamic_range_b, selection.summary_b.dynamic_range);
}

template <class T>
Ozaki1Task<T> ozaki1_task(const Plan& plan, const Blocking& blocking, const ItemSelection<T>& selection,
                          const Operands& operands, const MatrixView<T>& c) {
  return {.plan = plan,
          .candidate = plan.candidates[selection.candidate],
          .program = selection.program,
          .blocking = blocking,
          .a = selection.a.view,
          .b = selection.b.view,
          .rows = selection.a.ranges,
          .columns = selection.b.ranges,
          .alpha = scalar<T>(operands.alpha),
          .beta = scalar<T>(operands.beta),
          .c = c};
}

// Reports the program with the fewest slices that any block of C used. This number decides the bound for C.
template <class T>
void report_slices(Report& report, const Plan& plan, const ItemSelection<T>& selection) {
  const Candidate& candidate = plan.candidates[selection.candidate];
  Program program = selection.program;
  program.ozaki1.min_slices = report.ozaki1.min_slices;
  program.ozaki1.max_products = report.ozaki1.max_products;
  program.split_a.slices = program.split_b.slices = report.ozaki1.min_slices;
  report.set_adapted(candidate, program, plan.problem.products());
}

// Computes the elements that the grid of a reproducible product accepts.
template <class T>
void multiply_on_grid(const Plan& plan, ItemSelection<T>& selection, const Operands& operands,
                      const MatrixView<T>& c, Workspace workspace, Report& report) {
  const Candidate& first = plan.candidates.front();
  run_program(plan, report.blocking, first.program, first.accumulator, selection.a, selection.b, operands, c,
              workspace, report, &*selection.grid);
}

// Runs the selected candidate, which is not the native product.
template <class T>
void multiply_by_candidate(const Plan& plan, const Operands& operands, const MatrixView<T>& c,
                           Workspace& workspace, ItemSelection<T>& selection, Report& report) {
  const Candidate& candidate = plan.candidates[selection.candidate];
  const GridElements* grid = selection.grid ? &*selection.grid : nullptr;
  if (candidate.checked) {
    selection.candidate = multiply_checked(plan, report.blocking, selection.a, selection.b, operands, c,
                                           workspace, grid, selection.program, report.recomputed_elements);
  } else if (selection.program.recombination == Recombination::exact_sums) {
    std::byte* const scratch = lay_out_exact_sums(plan, workspace);
    const std::uint8_t* const open = mark_refused_elements(plan, grid, workspace);
    multiply_exactly(selection.a.view, selection.b.view, selection.a.ranges, selection.b.ranges,
                     scalar<T>(operands.alpha), scalar<T>(operands.beta), c, open, scratch, plan.threads);
  } else if (selection.program.recombination == Recombination::ozaki1) {
    if constexpr (!is_double_double<T>)  // no such scheme takes double-double
      multiply_by_ozaki1(ozaki1_task(plan, report.blocking, selection, operands, c), workspace,
                         report.ozaki1);
  } else {
    run_program(plan, report.blocking, selection.program, candidate.accumulator, selection.a, selection.b,
                operands, c, workspace, report);
  }
}

// Multiplies one batch item. A plan without emulations does not find ranges.
template <class T>
void multiply_item(const Plan& plan, const Operands& operands, std::int64_t item, Workspace workspace,
                   Report& report) {
  if (plan.is_native()) {
    ++report.items[0];
    return multiply_natively<T>(plan, plan.candidates[0], report.blocking, operands, item, workspace);
  }
  ItemSelection<T> selection = select_for_item<T>(plan, operands, item, workspace);
  const Candidate& candidate = plan.candidates[selection.candidate];
  if (candidate.scheme == nullptr) {
    add_to_report(report, plan, selection);
    return multiply_natively<T>(plan, candidate, report.blocking, operands, item, workspace);
  }
  const MatrixView<T> c = view_of_c<T>(plan.problem, operands.c, item);
  if (selection.grid) multiply_on_grid(plan, selection, operands, c, workspace, report);
  multiply_by_candidate(plan, operands, c, workspace, selection, report);
  add_to_report(report, plan, selection);
  if (selection.program.recombination == Recombination::ozaki1) report_slices(report, plan, selection);
  if (!selection.summary_a.finite || !selection.summary_b.finite) {
    write_special_values(selection.a.view, selection.b.view, selection.a.ranges, selection.b.ranges,
                         scalar<T>(operands.alpha), scalar<T>(operands.beta), c, plan.threads);
  }
}

// Fails if the ranges of a batch item will make its product fail. Called before C of any item is written.
// Returns at once if products of this plan cannot fail because of ranges.
template <class T>
void check_ranges(const Plan& plan, const Blocking& blocking, const Operands& operands,
                  const Workspace& workspace) {
  const bool can_fail_to_adapt =
      std::any_of(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& candidate) {
        return candidate.scheme != nullptr && (candidate.scheme->adapt != nullptr ||
                                               candidate.program.recombination == Recombination::ozaki1);
      });
  if (!can_fail_to_adapt && plan.candidates.back().acceptance.any_range()) return;
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item) {
    Workspace item_workspace = workspace;
    const ItemSelection<T> selection = select_for_item<T>(plan, operands, item, item_workspace);
    if (selection.program.recombination != Recombination::ozaki1) continue;
    const MatrixView<T> c = view_of_c<T>(plan.problem, operands.c, item);
    if constexpr (!is_double_double<T>)
      check_ozaki1(ozaki1_task(plan, blocking, selection, operands, c), item_workspace);
  }
}

}  // namespace

void check_workspace(const Plan& plan, const Operands& operands) {
  if (operands.workspace_size < plan.workspace_bytes) {
    fail(Status::workspace_too_small, "the workspace has {} bytes and the plan needs {}",
         operands.workspace_size, plan.workspace_bytes);
  }
  if (reinterpret_cast<std::uintptr_t>(operands.workspace) % workspace_alignment != 0) {
    fail(Status::invalid_argument, "the workspace's address {} is not a multiple of {}",
         fmt::ptr(operands.workspace), workspace_alignment);
  }
}

namespace {

void check_prepared(const Plan& plan, const Prepared* prepared, Side side) {
  if (prepared == nullptr) return;
  const Problem& problem = plan.problem;
  const char* name = side == Side::a ? "A" : "B";
  const std::int64_t vectors = side == Side::a ? problem.m : problem.n;
  const std::int64_t count = prepared->device != nullptr ? prepared->device->count
                                                         : static_cast<std::int64_t>(prepared->items.size());
  if (prepared->side != side) {
    fail(Status::invalid_argument, "an operand prepared as {} is given as {}", side == Side::a ? "B" : "A",
         name);
  }
  if ((prepared->device != nullptr) != (problem.memory == MemorySpace::device)) {
    fail(Status::invalid_argument,
         "{} was prepared in the {} memory and this problem's operands are in the {}", name,
         prepared->device != nullptr ? "device's" : "host's",
         prepared->device != nullptr ? "host's" : "device's");
  }
  if (prepared->type != problem.type || prepared->complex != problem.complex ||
      prepared->vectors != vectors || prepared->k != problem.k ||
      (count != 1 && count != problem.batch_count)) {
    fail(Status::invalid_argument,
         "{} was prepared with {} elements, {} vectors of length {} in a batch of {}; this problem has {} "
         "elements, {} of length {} in a batch of {}",
         name, element_type_name(prepared->type, prepared->complex), prepared->vectors, prepared->k, count,
         element_type_name(problem.type, problem.complex), vectors, problem.k, problem.batch_count);
  }
  if (prepared->device != nullptr && prepared->device->matrix.pointers && count != problem.batch_count) {
    fail(Status::invalid_argument,
         "{} was prepared from a table of one pointer, which cannot serve a batch of {}: prepare it by "
         "strides",
         name, problem.batch_count);
  }
}

template <class T>
void scale_results(const Plan& plan, const Operands& operands) {
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item) {
    scale_result(view_of_c<T>(plan.problem, operands.c, item), scalar<T>(operands.beta));
  }
}

template <class T>
void multiply_all(const Plan& plan, const Operands& operands, Report& report) {
  HostBuffer memory;
  const bool allocates = operands.workspace == nullptr || plan.workspace_bytes == 0;
  if (allocates) {
    memory = allocate_workspace(plan, report.blocking, "the allocator",
                                [&](std::size_t bytes) { return HostBuffer(plan.allocator, bytes); });
  } else {
    check_workspace(plan, operands);
  }
  report.workspace_bytes = allocates ? memory.bytes() : plan.workspace_bytes;
  const Workspace workspace = allocates ? Workspace(memory.pointer(), memory.bytes())
                                        : Workspace(operands.workspace, operands.workspace_size);
  const ShortCall short_call(plan.is_short_call && plan.threads > 1);
  check_ranges<T>(plan, report.blocking, operands, workspace);
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item) {
    multiply_item<T>(plan, operands, item, workspace, report);
  }
}

}  // namespace

void execute(const Plan& plan, const Operands& operands, Report& report) {
  const Problem& problem = plan.problem;
  report.blocking = plan.blocking;
  check_prepared(plan, operands.prepared_a, Side::a);
  check_prepared(plan, operands.prepared_b, Side::b);
  if (problem.memory == MemorySpace::device) return execute_on_device(plan, operands, report);
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return;
  if (problem.k == 0 || operands.alpha.is_zero()) {
    report.items_scaled = problem.batch_count;
    return with_element_type(problem, [&]<class T>() { scale_results<T>(plan, operands); });
  }
  if (plan.is_offloaded()) return offload(plan, operands, report);
  if (plan.engine->is_device()) return stage(plan, operands, report);
  with_element_type(problem, [&]<class T>() { multiply_all<T>(plan, operands, report); });
}

}  // namespace kintsugi::core
