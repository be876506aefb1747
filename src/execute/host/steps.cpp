#include "execute/host/steps.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "execute/blocks.hpp"
#include "execute/host/acceptance.hpp"
#include "execute/host/checked.hpp"
#include "execute/host/operand.hpp"
#include "planner/memory.hpp"
#include "planner/steps.hpp"
#include "recombine/recombine.hpp"
#include "recombine/special_values.hpp"
#include "split/maxima.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

namespace {

// One batch item.
template <class T>
class HostRun {
 public:
  HostRun(const Plan& plan, std::span<const Step> steps, const Blocking& blocking, const Operands& operands,
          std::int64_t item, const Workspace& workspace, Report& report)
      : plan_(plan), steps_(steps), blocking_(blocking), operands_(operands), item_(item),
        workspace_(workspace), report_(report), alpha_(scalar<T>(operands.alpha)),
        beta_(scalar<T>(operands.beta)), c_(view_of_c<T>(plan.problem, operands.c, item)) {}
  HostRun(const HostRun&) = delete;
  HostRun& operator=(const HostRun&) = delete;

  void run() {
    run_steps(steps_);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (native_is_exact_) multiply_without_error();
    }
    note_exceptions();
    add_to_report();
  }

  // Fails if the item's ranges will make its product fail. Nothing is written to C.
  void check() {
    find_ranges();
    select();
    if constexpr (!is_double_double<T>) {
      if (program_.recombination == Recombination::ozaki1) check_ozaki1(ozaki1_task(), workspace_);
    }
  }

 private:
  const Candidate& candidate(int index) const { return plan_.candidates[static_cast<std::size_t>(index)]; }
  const Candidate& selected() const { return candidate(selected_); }
  bool has_special_values() const { return !summary_a_.finite || !summary_b_.finite; }

  void run_steps(std::span<const Step> steps) {
    for_each_step(steps, [&](const Step& step, std::span<const Step> body) {
      if (runs(step)) run_step(step, body);
    });
  }

  // True if the step belongs to the selected candidate: checked candidates share their steps. If the grid of
  // a reproducible product accepts some elements, its steps run as well.
  bool runs(const Step& step) const {
    if (step.kind == StepKind::find_ranges || step.kind == StepKind::select) return true;
    if (native_is_exact_) return false;
    if (step.kind == StepKind::write_special_values)
      return selected().scheme != nullptr && has_special_values();
    const bool is_checked = candidate(step.candidate).checked;
    return is_checked ? selected().checked : step.candidate == selected_ || (grid_ && step.candidate == 0);
  }

  void run_step(const Step& step, std::span<const Step> body) {
    switch (step.kind) {
      case StepKind::find_ranges: return find_ranges();
      case StepKind::select: return select();
      case StepKind::for_blocks: return run_blocks(step, body);
      case StepKind::split: return split();
      case StepKind::multiply: return multiply(step);
      case StepKind::recombine: return recombine();
      case StepKind::fused: return run_fused(step);
      case StepKind::choose_checked: return choose_checked();
      case StepKind::multiply_checked:
        report_.recomputed_elements += checked_->multiply_block(block_);
        return;
      case StepKind::multiply_by_ozaki1: return run_ozaki1();
      case StepKind::multiply_exactly: return multiply_exactly(step);
      case StepKind::multiply_natively: return multiply_natively(step);
      case StepKind::write_special_values:
        return write_special_values(a_.view, b_.view, a_.ranges, b_.ranges, alpha_, beta_, c_, plan_.threads);
      default: fail(Status::internal, "the step {} is not one of the host", step_name(step.kind));
    }
  }

  // ---------------------------------------------------------------- selection

  void find_ranges() {
    const Problem& problem = plan_.problem;
    const Program& program = plan_.widest_emulation()->program;
    const RangeMemory ranges = lay_out_ranges(plan_, workspace_);
    a_ = {.view = view_of_a<T>(problem, operands_.a, operands_.prepared_a, item_),
          .ranges = ranges.rows,
          .prepared = prepared_item(operands_.prepared_a, item_)};
    b_ = {.view = view_of_b<T>(problem, operands_.b, operands_.prepared_b, item_),
          .ranges = ranges.columns,
          .prepared = prepared_item(operands_.prepared_b, item_)};
    const NormMemory norms = lay_out_norms(plan_, workspace_);
    a_.norms = norms.rows;
    b_.norms = norms.columns;
    find_ranges_of(a_, program.split_a);
    find_ranges_of(b_, program.split_b);
    summary_a_ = summarize(a_.ranges);
    summary_b_ = summarize(b_.ranges);
  }

  // The exponents do not depend on the candidate, so `rule` may be the rule of any candidate. set_program()
  // later sets the scales for the selected candidate.
  void find_ranges_of(SideOf<T>& side, const SplitRule& rule) {
    if (plan_.request.is_reproducible()) {
      // Prepared slices are not used: their scales are different from the scales of a reproducible product.
      side.prepared = nullptr;
      find_depths(side.view, side.ranges, plan_.threads);
      set_scales(side.ranges, rule);
    } else if (side.prepared != nullptr && !side.prepared->ranges.empty()) {
      std::ranges::copy(side.prepared->ranges, side.ranges.begin());
      if (!side.norms.empty()) find_norms(side.view, side.ranges, side.norms, plan_.threads);
    } else {
      core::find_ranges(side.view, rule, side.ranges, plan_.threads, {}, side.norms);
    }
  }

  void select() {
    const auto proved = prove_by_norms(plan_, {a_.ranges, a_.norms}, {b_.ranges, b_.norms});
    selected_ = main_ = static_cast<int>(select_candidate(plan_, summary_a_, summary_b_, proved));
    if (begins_with_grid(plan_) && selected_ > 0) {
      grid_.emplace(plan_, RangeMemory{a_.ranges, b_.ranges}, lay_out_ranges(plan_, workspace_));
      if (!grid_->accept_any()) grid_.reset();
    }
    if (selected().scheme == nullptr) return;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      native_is_exact_ =
          may_multiply_without_error() && core::native_is_exact(a_.view, summary_a_, b_.view, summary_b_);
    }
    may_raise_ = may_raise_exceptions();
    if (may_raise_ && beta_ != T(0))
      special_before_ = count_special_results(c_, a_.ranges, b_.ranges, plan_.threads);
    program_ = selected().program;
    if (selected().scheme->adapt != nullptr)
      selected().scheme->adapt(program_, summary_a_, summary_b_, plan_.problem.products());
  }

  // ---------------------------------------------------------------- blocks of C

  void run_blocks(const Step& loop, std::span<const Step> body) {
    if (!candidate(loop.candidate).checked) begin_candidate(loop, body.front());
    for_each_block(loop.size, c_.rows, c_.columns, [&](const ResultBlock& block) {
      block_ = block;
      run_steps(body);
    });
  }

  // Sets the scales of a candidate and takes the memory of its blocks.
  void begin_candidate(const Step& loop, const Step& first_step) {
    const bool is_on_grid = grid_ && loop.candidate == 0;
    current_ = is_on_grid ? &candidate(0).program : &program_;
    set_program(*current_, a_, b_);
    set_residue_scales(plan_, *current_, blocking_, a_, b_, workspace_);
    Workspace workspace = workspace_;  // a copy: all candidates use the same memory
    if (first_step.kind == StepKind::fused) {
      block_memory_.scratch = workspace.take(first_step.kernel->scratch_bytes(
          fused_problem(plan_, candidate(loop.candidate), *current_, blocking_), plan_.threads));
    } else {
      block_memory_ = take_block(plan_, *current_, blocking_, a_, b_, workspace);
    }
    refused_.emplace(plan_, blocking_, is_on_grid ? &*grid_ : nullptr, workspace);
    rows_.forget();
    columns_.forget();
  }

  MatrixView<T> block_of_c() const {
    return c_.block(block_.row, block_.column, block_.rows, block_.columns);
  }
  std::span<const VectorRange> ranges_of_rows() const { return a_.ranges.subspan(block_.row, block_.rows); }
  std::span<const VectorRange> ranges_of_columns() const {
    return b_.ranges.subspan(parts * block_.column, parts * block_.columns);
  }

  void split() {
    if (columns_.replace(block_.column))
      slices_b_ = split_vectors(b_, {block_.column, block_.columns}, plan_.threads);
    if (rows_.replace(block_.row)) slices_a_ = split_vectors(a_, {block_.row, block_.rows}, plan_.threads);
  }

  void multiply(const Step& step) {
    sums_ = multiply_slices(plan_, *current_, candidate(step.candidate).accumulator, slices_a_, slices_b_,
                            block_memory_);
    if (has_tiles(*current_)) finish_tiled_sums();
  }

  // Counts the tiles that this block is the first to use. Computes the products of failing tiles as a second
  // group of sums, if there are any.
  void finish_tiled_sums() {
    if (block_.column == 0) report_.tiles_a += count_tiles(slices_a_);
    if (block_.row == 0) report_.tiles_b += count_tiles(slices_b_);
    if constexpr (std::is_same_v<RealOf<T>, float>) {
      const OperandView<T> a = a_.view.vectors(block_.row, block_.rows);
      const OperandView<T> b = b_.view.vectors(parts * block_.column, parts * block_.columns);
      const bool fails = add_failing_tiles(TiledOperand<OperandView<T>>{a, ranges_of_rows(), slices_a_},
                                           TiledOperand<OperandView<T>>{b, ranges_of_columns(), slices_b_},
                                           sums_, plan_.threads);
      if (!fails) sums_.groups = 1;
    }
  }

  void recombine() {
    const MatrixView<T> c = block_of_c();
    refused_->save(block_, c);
    if (current_->recombination == Recombination::residues) {
      recombine_residues(sums_, current_->residue_system(), ranges_of_rows(), ranges_of_columns(), alpha_,
                         beta_, c, plan_.threads);
    } else if (scales_by_maxima(current_->split_a)) {
      recombine_by_maxima(c);
    } else if constexpr (!is_double_double<T>) {  // no scheme with weighted sums takes double-double
      std::array<int, max_groups> exponents{};
      for (int g = 0; g < current_->schedule.sums(); ++g) exponents[g] = current_->schedule.sum_exponent(g);
      recombine_weighted(sums_, exponents, ranges_of_rows(), ranges_of_columns(), alpha_, beta_, c,
                         plan_.threads);
    }
    refused_->restore(block_, c);
  }

  // The weights of slices are found again, since prepared slices have none.
  void recombine_by_maxima(const MatrixView<T>& c) {
    if constexpr (std::is_same_v<RealOf<T>, float>) {
      const Program& program = *current_;
      find_slice_weights(a_.view.vectors(block_.row, block_.rows), program.split_a, ranges_of_rows(),
                         plan_.threads, block_memory_.weights_a.data());
      find_slice_weights(b_.view.vectors(parts * block_.column, parts * block_.columns), program.split_b,
                         ranges_of_columns(), plan_.threads, block_memory_.weights_b.data());
      std::array<std::pair<int, int>, max_groups> slices{};
      for (const Term& term : program.schedule.terms) slices[term.group] = {term.a, term.b};
      core::recombine_by_maxima(sums_, slices, {block_memory_.weights_a.data(), program.split_a.slices},
                                {block_memory_.weights_b.data(), program.split_b.slices}, ranges_of_rows(),
                                ranges_of_columns(), alpha_, beta_, c, plan_.threads);
    }
  }

  void run_fused(const Step& step) {
    const FusedProblem problem = fused_problem(plan_, candidate(step.candidate), *current_, blocking_);
    const MatrixView<T> c = block_of_c();
    std::atomic<std::int64_t> recomputed = 0;
    refused_->save(block_, c);
    runner_of<T> (*step.kernel)(
        {.problem = problem,
         .a = elements_of(a_.view.vectors(block_.row, block_.rows)),
         .b = elements_of(b_.view.vectors(parts * block_.column, parts * block_.columns)),
         .rows = ranges_of_rows(),
         .columns = ranges_of_columns(),
         .c = c,
         .alpha = alpha_,
         .beta = beta_,
         .scratch = block_memory_.scratch,
         .threads = plan_.threads,
         .recomputed = &recomputed,
         .conjugates_a = is_conjugated(a_.view),
         .conjugates_b = is_conjugated(b_.view)});
    report_.recomputed_elements += recomputed;
    refused_->restore(block_, c);
  }

  // ---------------------------------------------------------------- other candidates

  const GridElements* grid() const { return grid_ ? &*grid_ : nullptr; }

  void choose_checked() {
    checked_.emplace(plan_, blocking_, a_, b_, operands_, c_, workspace_, grid());
    main_ = static_cast<int>(checked_->choose(program_));
  }

  void multiply_exactly(const Step& step) {
    Workspace workspace = workspace_;
    std::byte* const scratch = lay_out_exact_sums(plan_, workspace);
    const bool is_on_grid = is_grid(plan_, step.candidate);
    const std::uint8_t* const open = mark_elements(plan_, grid(), is_on_grid, workspace);
    if constexpr (!is_double_double<T>) {
      if (is_on_grid) {
        set_program(candidate(step.candidate).program, a_, b_);
        return multiply_on_grid(a_.view, b_.view, a_.ranges, b_.ranges, alpha_, beta_, c_, open, scratch,
                                plan_.threads);
      }
    }
    core::multiply_exactly(a_.view, b_.view, a_.ranges, b_.ranges, alpha_, beta_, c_, open,
                           plan_.engine->host()->sum_kernels(), plan_.rounding, scratch, plan_.threads);
  }

  Ozaki1Task<T> ozaki1_task() const {
    return {.plan = plan_,
            .candidate = selected(),
            .program = program_,
            .blocking = blocking_,
            .a = a_.view,
            .b = b_.view,
            .rows = a_.ranges,
            .columns = b_.ranges,
            .alpha = alpha_,
            .beta = beta_,
            .c = c_};
  }

  void run_ozaki1() {
    if constexpr (!is_double_double<T>)  // no such scheme takes double-double
      multiply_by_ozaki1(ozaki1_task(), workspace_, report_.ozaki1);
  }

  void multiply_natively(const Step& step) {
    Workspace workspace = workspace_;
    clear_product_exceptions();
    core::multiply_natively<T>(plan_, candidate(step.candidate), blocking_, operands_, item_, workspace);
    report_.exceptions |= raised_product_exceptions();
  }

  // True if a correctly rounded native product is a result of the plan: under `exact`, where neither
  // scheme nor policy asks for an emulation, and where alpha and beta round nothing.
  bool may_multiply_without_error() const {
    return plan_.contract.accuracy.kind == Accuracy::Kind::exact && plan_.rounding == RoundingMode::nearest &&
           plan_.request.scheme.empty() && plan_.request.policy == Policy::automatic &&
           (alpha_ == T(1) || alpha_ == T(-1)) && beta_ == T(0);
  }

  void multiply_without_error() {
    Workspace workspace = workspace_;
    core::multiply_natively<T>(plan_, Candidate{}, blocking_, operands_, item_, workspace);
    for (std::int64_t j = 0; j < c_.columns; ++j) {
      for (std::int64_t i = 0; i < c_.rows; ++i) c_(i, j) = c_(i, j) + T(0);  // turns -0 into 0
    }
  }

  // ---------------------------------------------------------------- exceptions

  // False if the ranges exclude that finite elements overflow. What C and AB, which does not overflow, add up
  // to is not tested for |beta| up to 1: C would have to be at the edge of overflow already.
  bool may_raise_exceptions() const {
    using Real = std::conditional_t<std::is_same_v<RealOf<T>, float>, float, double>;
    constexpr int alpha_bits = 4;
    constexpr double largest_alpha = 8;  // both parts of a complex alpha add products
    constexpr double largest_beta = 1;
    if (has_special_values() || !(half_magnitude(alpha_) <= largest_alpha / 2) ||
        !(half_magnitude(beta_) <= largest_beta / 2))
      return true;
    const auto length_bits =
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(plan_.problem.products())));
    // Operands of zeros have the least integer as their exponent.
    const std::int64_t top = std::int64_t{summary_a_.largest} + summary_b_.largest + 2 + length_bits;
    return top + alpha_bits >= std::numeric_limits<Real>::max_exponent;
  }

  // Half of the sum of the magnitudes of the scalar's parts; NaN if one of them is NaN.
  static double half_magnitude(const T& scalar) {
    if constexpr (is_complex<T>) {
      return std::fabs(static_cast<double>(scalar.real()) / 2) +
             std::fabs(static_cast<double>(scalar.imag()) / 2);
    } else if constexpr (is_double_double<T>) {
      return std::fabs(scalar.hi / 2);
    } else {
      return std::fabs(static_cast<double>(scalar) / 2);
    }
  }

  void note_exceptions() {
    if (!may_raise_) return;
    const SpecialResults after = count_special_results(c_, a_.ranges, b_.ranges, plan_.threads);
    const double scalars = half_magnitude(alpha_) + half_magnitude(beta_);
    if (after.infinities > special_before_.infinities && std::isfinite(scalars))
      report_.exceptions |= FE_OVERFLOW;
    if (after.nans > special_before_.nans && !std::isnan(scalars)) report_.exceptions |= FE_INVALID;
  }

  // ---------------------------------------------------------------- report

  // A plan without emulations finds no ranges.
  void add_to_report() const {
    ++report_.items[static_cast<std::size_t>(main_)];
    if (plan_.is_native()) return;
    const Candidate& main = candidate(main_);
    const bool is_as_planned =
        program_.split_a == main.program.split_a && program_.split_b == main.program.split_b;
    if (main.scheme != nullptr && !is_as_planned)
      report_.set_adapted(main, program_, plan_.problem.products());
    if (has_special_values()) ++report_.items_with_special_values;
    report_.ranges_known = true;
    report_.dynamic_range_a = std::max(report_.dynamic_range_a, summary_a_.dynamic_range);
    report_.dynamic_range_b = std::max(report_.dynamic_range_b, summary_b_.dynamic_range);
    if (program_.recombination == Recombination::ozaki1) report_slices();
  }

  // Reports the program with the fewest slices that any block of C used. This number decides the bound for C.
  void report_slices() const {
    Program program = program_;
    program.ozaki1.min_slices = report_.ozaki1.min_slices;
    program.ozaki1.max_products = report_.ozaki1.max_products;
    program.split_a.slices = program.split_b.slices = report_.ozaki1.min_slices;
    report_.set_adapted(selected(), program, plan_.problem.products());
  }

  static constexpr std::int64_t parts = parts_of<T>;  // vectors of B in a column of C

  const Plan& plan_;
  std::span<const Step> steps_;
  const Blocking& blocking_;
  const Operands& operands_;
  std::int64_t item_;
  Workspace workspace_;
  Report& report_;
  T alpha_;
  T beta_;
  MatrixView<T> c_;
  SideOf<T> a_{}, b_{};
  RangeSummary summary_a_{}, summary_b_{};
  bool may_raise_ = false;           // the product may overflow or be invalid
  SpecialResults special_before_{};  // of C, if it is read and may_raise_
  bool native_is_exact_ = false;     // the native product is computed in place of the selected candidate
  int selected_ = 0;                 // index of the selected candidate
  int main_ = 0;  // the same; of checked candidates, the index of the main one, which is reported
  Program
      program_{};  // the selected candidate's program, adapted to the ranges; empty for the native product
  // Set if the grid of a reproducible product accepts only some elements. The selected candidate computes the
  // others.
  std::optional<GridElements> grid_;
  std::optional<CheckedProduct<T>> checked_;
  const Program* current_ = nullptr;  // program of the current blocks
  BlockMemory block_memory_{};
  std::optional<RefusedElements<T>> refused_;
  ResultBlock block_{};
  Slices slices_a_{}, slices_b_{};
  SplitVectors rows_, columns_;
  Accumulators sums_{};
};

// True if the ranges of a batch item can make its product fail.
bool can_fail(const Plan& plan) {
  return !plan.candidates.back().acceptance.any_range() ||
         std::ranges::any_of(plan.candidates, [](const Candidate& candidate) {
           return candidate.scheme != nullptr && (candidate.scheme->adapt != nullptr ||
                                                  candidate.program.recombination == Recombination::ozaki1);
         });
}

template <class T>
void run_all(const Plan& plan, std::span<const Step> steps, const Operands& operands,
             const Workspace& workspace, Report& report) {
  const auto for_each_item = [&](const auto& visit) {
    for (std::int64_t item = 0; item < plan.problem.batch_count; ++item) {
      HostRun<T> run(plan, steps, report.blocking, operands, item, workspace, report);
      visit(run);
    }
  };
  // Nothing is written to C of any item before all ranges are known not to fail.
  if (can_fail(plan)) for_each_item([](HostRun<T>& run) { run.check(); });
  for_each_item([](HostRun<T>& run) { run.run(); });
}

}  // namespace

void execute_on_host(const Plan& plan, const Operands& operands, Report& report) {
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
  const bool is_as_planned = report.blocking == plan.blocking;
  const std::vector<Step> smaller = is_as_planned ? std::vector<Step>{} : make_steps(plan, report.blocking);
  const std::span<const Step> steps = is_as_planned ? plan.steps : smaller;
  const ShortCall short_call(plan.is_short_call && plan.threads > 1);
  with_element_type(plan.problem, [&]<class T>() {
    run_all<T>(plan, steps.subspan(1), operands, workspace, report);  // the first step: for_items
  });
}

}  // namespace kintsugi::core
