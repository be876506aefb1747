#include "planner/steps.hpp"

#include <algorithm>
#include <utility>

#include "base/text/format_text.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/device_call.hpp"
#include "planner/memory.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

FusedProblem fused_problem(const Plan& plan, const Candidate& candidate, const Program& program) {
  const Problem& problem = plan.problem;
  return {.split_a = program.split_a,
          .split_b = program.split_b,
          .schedule = program.schedule,
          .accumulator = candidate.accumulator,
          .weighted = program.recombination == Recombination::weighted && !candidate.scheme->fits_residuals(),
          .type = element_type(problem),
          .m = problem.m,
          .n = problem.n,
          .k = problem.k,
          .is_double_double = problem.type == OperandType::dd};
}

FusedProblem fused_problem(const Plan& plan, const Candidate& candidate, const Program& program,
                           const Blocking& blocking) {
  FusedProblem problem = fused_problem(plan, candidate, program);
  problem.m = std::min(problem.m, blocking.m);
  problem.n = std::min(problem.n, blocking.n);
  return problem;
}

namespace {

constexpr std::array block_kinds{StepKind::split, StepKind::multiply, StepKind::recombine};

// Fails if the kernel lacks what an execution of its steps calls.
void check_fused_kernel(const Plan& plan, const FusedKernel& kernel) {
  const Engine& engine = *plan.engine;
  const ElementType type = element_type(plan.problem);
  const bool runs = plan.problem.type == OperandType::dd ? kernel.run_dd != nullptr
                    : type == ElementType::f32           ? kernel.run_f32 != nullptr
                    : type == ElementType::f64           ? kernel.run_f64 != nullptr
                    : type == ElementType::c32           ? kernel.run_c32 != nullptr
                                                         : kernel.run_c64 != nullptr;
  const std::span steps(block_kinds);
  const bool is_on_device =
      std::ranges::equal(kernel.steps, steps.last(2)) || std::ranges::equal(kernel.steps, steps);
  if (engine.is_device() ? is_on_device && kernel.launch != nullptr && kernel.choose != nullptr &&
                               kernel.device_scratch_bytes != nullptr
                         : std::ranges::equal(kernel.steps, steps) && kernel.scratch_bytes != nullptr && runs)
    return;
  fail(
      Status::internal,
      "the fused kernel {} of the engine {} takes {} elements, but not as an engine of {} must: by {}",
      kernel.name, engine.name(), element_type_name(plan.problem.type, plan.problem.complex),
      engine.is_device() ? "a device" : "the host",
      engine.is_device()
          ? "choose, device_scratch_bytes and launch, for the steps multiply and recombine, or split as well"
          : "scratch_bytes and run_f32, run_f64, run_c32, run_c64 or run_dd, for the steps split, multiply and recombine");
}

}  // namespace

const FusedKernel* fused_kernel(const Plan& plan, const Candidate& candidate) {
  if (candidate.scheme == nullptr) return nullptr;
  const FusedProblem problem = fused_problem(plan, candidate, candidate.program);
  for (const FusedKernel& kernel : plan.engine->fused_kernels()) {
    if (!kernel.takes(problem)) continue;
    check_fused_kernel(plan, kernel);
    return &kernel;
  }
  return nullptr;
}

const FusedKernel* fused_checked_kernel(const Plan& plan, const Candidate& candidate) {
  return allows_error(plan) ? nullptr : fused_kernel(plan, candidate);
}

std::span<const Candidate> emulations(const Plan& plan) {
  const bool native_follows = plan.candidates.back().scheme == nullptr;
  return {plan.candidates.data(), plan.candidates.size() - (native_follows ? 1 : 0)};
}

std::span<const Candidate> product_candidates(const Plan& plan) {
  const auto multiplies = [](const Candidate& candidate) {
    return candidate.scheme != nullptr && candidate.program.recombination != Recombination::exact_sums;
  };
  return {plan.candidates.begin(),
          std::find_if_not(plan.candidates.begin(), plan.candidates.end(), multiplies)};
}

bool may_share_kernels(const Plan& plan, const Candidate& least, const Candidate& most) {
  if (!plan.engine->is_device() || plan.problem.complex) return false;
  const SplitRule& first = least.program.split_a;
  const SplitRule& last = most.program.split_a;
  return first == least.program.split_b && last == most.program.split_b &&
         cuda::shares_kernels(element_type(plan.problem), first, last);
}

std::span<const Candidate> shared_candidates(const Plan& plan) {
  constexpr std::size_t fewest_candidates = 4;  // two that share kernels, between the first one and native
  const std::vector<Candidate>& candidates = plan.candidates;
  if (candidates.size() < fewest_candidates || candidates.size() > LongDeviceReport::max_candidates ||
      candidates.back().scheme != nullptr || !candidates.back().acceptance.any_range())
    return {};
  const auto is_proved_by_norms = [](const Candidate& candidate) {
    return candidate.acceptance.by_norms() && !candidate.checked;
  };
  const std::span shared(candidates.begin() + 1, candidates.end() - 1);
  if (!is_proved_by_norms(candidates.front())) return {};
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const bool is_next =
        shared[i].program.split_a.slices == shared.front().program.split_a.slices + static_cast<int>(i);
    if (!is_proved_by_norms(shared[i]) || !is_next) return {};
  }
  return may_share_kernels(plan, shared.front(), shared.back()) ? shared : std::span<const Candidate>{};
}

bool has_long_chain(const Plan& plan) {
  return plan.candidates.size() > DeviceReport::max_candidates && !shared_candidates(plan).empty();
}

bool is_fused(const Plan& plan) {
  return plan.engine->is_device() && !emulations(plan).empty() &&
         std::ranges::all_of(emulations(plan), [&](const Candidate& candidate) {
           return fused_kernel(plan, candidate) != nullptr;
         });
}

bool converts_inside(const Plan& plan) {
  return is_fused(plan) && plan.candidates.size() == 1 &&
         fused_kernel(plan, plan.candidates.front())->steps.front() == StepKind::split;
}

bool sums_exactly(const Plan& plan) {
  return plan.candidates.front().program.recombination == Recombination::exact_sums;
}

bool is_ozaki1(const Plan& plan) {
  return plan.candidates.front().program.recombination == Recombination::ozaki1;
}

bool begins_with_selection(const Plan& plan) {
  return plan.problem.batch_count == 1 && !plan.is_native() && !is_ozaki1(plan) && !converts_inside(plan) &&
         !has_tiles(plan.candidates.front().program);  // tiles are counted in the report before the selection
}

bool allows_error(const Plan& plan) { return plan.contract.checked_coefficient > 0; }

std::int64_t vectors_per_column(const Plan& plan, const Candidate& candidate) {
  return candidate.program.multiplies_elements() ? 1 : plan.problem.parts();
}

double proved_coefficient(const Plan& plan) {
  return ElementDemand{plan.contract.coefficient, unit_roundoff(plan.problem.type)}.max_deviation();
}

namespace {

class StepList {
 public:
  Step& add(StepKind kind, int candidate = 0) {
    Step& step = steps_.emplace_back();
    step.kind = kind;
    step.candidate = static_cast<std::int16_t>(candidate);
    return step;
  }
  // Adds a loop over the steps that add_body() adds.
  template <class AddBody>
  void loop(StepKind kind, const Blocking& size, int candidate, const AddBody& add_body) {
    const std::size_t index = steps_.size();
    add(kind, candidate).size = size;
    add_body();
    steps_[index].length = static_cast<std::int16_t>(steps_.size() - index - 1);
  }
  std::vector<Step> take() { return std::move(steps_); }

 private:
  std::vector<Step> steps_;
};

// Returns the steps of a block of C by a candidate, after the rule of fused kernels.
std::vector<Step> block_steps(const Plan& plan, int index) {
  const FusedKernel* kernel = fused_kernel(plan, plan.candidates[static_cast<std::size_t>(index)]);
  std::vector<Step> steps;
  const auto add = [&](StepKind kind) {
    Step& step = steps.emplace_back();
    step.kind = kind;
    step.candidate = static_cast<std::int16_t>(index);
  };
  for (const StepKind kind : block_kinds) {
    if (kernel == nullptr || std::ranges::find(kernel->steps, kind) == kernel->steps.end()) {
      add(kind);
    } else if (kind == kernel->steps.front()) {
      add(StepKind::fused);
      steps.back().kernel = kernel;
    }
  }
  return steps;
}

// ---------------------------------------------------------------- in a queue

class DeviceSteps {
 public:
  DeviceSteps(const Plan& plan, const Blocking& blocking) : plan_(plan), blocking_(blocking) {}

  std::vector<Step> make() {
    if (plan_.is_native()) {
      list_.add(StepKind::multiply_natively);
      return list_.take();
    }
    const bool fused = is_fused(plan_);
    const std::int64_t items = fused ? items_at_once(plan_, blocking_) : 1;
    list_.loop(StepKind::for_items, {items, 1}, Step::no_candidate, [&] {
      if (converts_inside(plan_)) return add_converting();
      if (fused) return add_fused();
      if (is_ozaki1(plan_)) return add_ozaki1();
      add_separate();
    });
    return list_.take();
  }

 private:
  const Candidate& candidate(int index) const { return plan_.candidates[static_cast<std::size_t>(index)]; }
  int native_candidate() const {  // its index; none if the chain does not end with native
    return plan_.candidates.back().scheme == nullptr ? static_cast<int>(plan_.candidates.size()) - 1
                                                     : Step::no_candidate;
  }

  void add_split(int index, CallProperty selected, bool finds_ranges) {
    Step& split = list_.add(StepKind::split, index);
    split.selected = selected;
    split.finds_ranges = finds_ranges;
    if (candidate(index).program.schedule.tiles.depth == 0) return;
    Step& count = list_.add(StepKind::count_tiles, index);
    count.when = CallProperty::reported;
    count.selected = selected;
  }

  void add_fused_product(int index, CallProperty selected) {
    Step step = block_steps(plan_, index).back();
    step.selected = selected;
    list_.add(StepKind::fused, index) = step;
  }

  // Adds the summaries of operands with many vectors, which the selection then reads.
  void add_summarize(CallProperty when) {
    if (std::max(plan_.problem.m, plan_.problem.n) > most_ranges_selected)
      list_.add(StepKind::summarize).when = when;
  }

  // Adds the steps of a plan whose only kernel converts operands, tests elements, and computes those that
  // fail. It writes the report, too, which has no ranges.
  void add_converting() {
    list_.loop(StepKind::for_blocks, blocking_, Step::no_candidate,
               [&] { add_fused_product(0, CallProperty::never); });
  }

  // Adds the steps of a plan whose emulations are computed by one kernel each, from slices to C. If a block
  // covers C and the host knows alpha, the first candidate's split finds the ranges; if there is one
  // emulation, which accepts most operands, its product precedes the selection. C is overwritten if native is
  // selected then, which is possible only if C is not read.
  void add_fused() {
    const bool knows_scalars = !plan_.problem.device_scalars;
    if (plan_.candidates.size() == 1 && knows_scalars) {
      list_.loop(StepKind::for_blocks, blocking_, 0, [&] {
        add_split(0, CallProperty::never, /*finds_ranges=*/true);
        add_fused_product(0, CallProperty::never);
      });
      add_summarize(CallProperty::reported);
      Step& select = list_.add(StepKind::select);  // only for the report
      select.when = CallProperty::reported;
      select.overlaps = true;
      return;
    }
    const bool splits_first = covers_all(plan_, blocking_) && knows_scalars;
    const bool multiplies_first = splits_first && emulations(plan_).size() == 1;
    const CallProperty before_product = multiplies_first ? CallProperty::adds_to_c : CallProperty::always;
    int next = 0;
    if (splits_first) {
      list_.loop(StepKind::for_blocks, blocking_, 0, [&] {
        add_split(0, CallProperty::never, /*finds_ranges=*/true);
        add_summarize(CallProperty::always);
        list_.add(StepKind::select).when = before_product;
        add_fused_product(0, before_product);
      });
      next = 1;
    } else {
      list_.add(StepKind::find_ranges);
      add_summarize(CallProperty::always);
      list_.add(StepKind::select);
    }
    for (; next < static_cast<int>(emulations(plan_).size()); ++next) {
      list_.loop(StepKind::for_blocks, blocking_, next, [&] {
        add_split(next, CallProperty::always, /*finds_ranges=*/false);
        add_fused_product(next, CallProperty::always);
      });
    }
    if (!knows_scalars) list_.add(StepKind::scale);
    if (native_candidate() == Step::no_candidate) return;
    if (multiplies_first)
      list_.add(StepKind::select_or_multiply_natively, native_candidate()).when = CallProperty::overwrites_c;
    list_.add(StepKind::multiply_natively, native_candidate()).when = before_product;
  }

  StepKind find_kind() const {
    const Candidate& first = plan_.candidates.front();
    if (first.acceptance.by_norms()) return StepKind::find_norms;
    return first.program.split_a.scales == ScaleRule::norm ? StepKind::find_scaling_norms
                                                           : StepKind::find_ranges;
  }

  // True if one step finds norms and splits whole operands for the first candidate, which norms prove most
  // often. Prepared operands need no such step.
  bool splits_by_norms() const {
    const Candidate& first = plan_.candidates.front();
    if (!first.acceptance.by_norms() || !covers_all(plan_, blocking_)) return false;
    const auto takes = [&](Side side) {
      return cuda::finds_norms(device_split(plan_, first, side, blocking_));
    };
    const bool splits_a = !plan_.problem.prepared_a;
    const bool splits_b = !plan_.problem.prepared_b;
    return (splits_a || splits_b) && (!splits_a || takes(Side::a)) && (!splits_b || takes(Side::b));
  }

  // True if the plan's only program is valid for exponents up to a limit. C becomes NaN if operands exceed
  // it.
  bool can_fail() const {
    return plan_.candidates.front().acceptance.exponent < Acceptance::any || is_ozaki1(plan_);
  }

  // Adds the steps of a plan whose sums go through memory.
  void add_separate() {
    const Candidate& first = plan_.candidates.front();
    const auto products = static_cast<int>(product_candidates(plan_).size());
    const auto shared = static_cast<int>(shared_candidates(plan_).size());
    // Ranges are found before the first split if a kernel reads the selection, or if ranges and split have
    // different vectors. Otherwise the split finds them.
    const bool selects = plan_.candidates.size() > 1 || plan_.problem.device_scalars || can_fail() ||
                         plan_.is_checked() || sums_exactly(plan_) || first.program.multiplies_elements();
    const bool finds_and_splits = selects && splits_by_norms();
    if (selects && !finds_and_splits) {
      list_.add(find_kind());
      list_.add(StepKind::select);
    }
    for (int c = 0; c < products - shared && !candidate(c).checked; ++c)
      add_products(c, selects, c == 0 && finds_and_splits);
    if (shared > 0) add_shared(products - shared, shared);
    if (plan_.is_checked()) add_checked(products);
    if (sums_exactly(plan_)) list_.add(StepKind::multiply_exactly);
    if (selects) add_ends();
    if (recombines_last()) list_.add(StepKind::recombine_last);
    if (!selects) list_.add(StepKind::select).when = CallProperty::reported;  // only for the report
  }

  // Adds the steps for all selections except emulations: beta C if alpha is 0, and the native product or, if
  // no candidate accepts the item, NaN.
  void add_ends() {
    if (plan_.problem.device_scalars) list_.add(StepKind::scale);
    if (can_fail()) {
      list_.add(StepKind::multiply_natively, DeviceSelection::none);
    } else if (native_candidate() != Step::no_candidate) {
      list_.add(StepKind::multiply_natively, native_candidate());
    }
  }

  // True if the first candidate's last recombination comes after the kernels of all other candidates. These
  // exit early while its products still run. That gains nothing if the recombination does not overlap the
  // kernels before it.
  bool recombines_last() const {
    return element_type(plan_.problem) == ElementType::f64 && !plan_.is_checked() && !sums_exactly(plan_) &&
           plan_.candidates.front().program.recombination == Recombination::residues;
  }

  void add_products(int index, bool selects, bool finds_and_splits) {
    const CallProperty selected = selects ? CallProperty::always : CallProperty::never;
    const Blocking blocks = candidate_blocking(plan_, candidate(index), blocking_);
    list_.loop(StepKind::for_blocks, blocks, index, [&] {
      if (finds_and_splits) {
        list_.add(StepKind::split_by_norms, index);
        list_.add(StepKind::select);
      } else {
        add_split(index, selected, !selects);
      }
      list_.loop(StepKind::for_tiles, tiles_of(plan_, candidate(index), blocks), index, [&] {
        list_.add(StepKind::multiply, index).selected = selected;
        Step& recombine = list_.add(StepKind::recombine, index);
        recombine.selected = selected;
        recombine.keeps_last = index == 0 && recombines_last();
      });
    });
  }

  // Adds the steps of candidates that share kernels. Memory and tiles are those of the last of them, which
  // has the most moduli.
  void add_shared(int first, int count) {
    const Candidate& most = candidate(first + count - 1);
    const auto add = [&](StepKind kind) { list_.add(kind, first).shared = static_cast<std::int16_t>(count); };
    const Blocking blocks = candidate_blocking(plan_, most, blocking_);
    list_.loop(StepKind::for_blocks, blocks, first + count - 1, [&] {
      add(StepKind::split);
      list_.loop(StepKind::for_tiles, tiles_of(plan_, most, blocks), first + count - 1, [&] {
        add(StepKind::multiply);
        add(StepKind::recombine);
      });
    });
  }

  // Adds the steps of checked candidates. They compute a block of C one after the other, as long as wider
  // ones pay for its open elements; the elements that the last one leaves open are recomputed.
  void add_checked(int products) {
    const auto first = static_cast<int>(plan_.checked_candidate() - plan_.candidates.data());
    if (products - first > 1) list_.add(StepKind::choose_checked, first);
    list_.loop(StepKind::for_blocks, blocking_, Step::no_candidate, [&] {
      list_.add(StepKind::begin_checks, first);
      for (int c = first; c < products; ++c) {
        const Blocking blocks = candidate_blocking(plan_, candidate(c), blocking_);
        list_.loop(StepKind::for_blocks, blocks, c, [&] {
          if (allows_error(plan_)) list_.add(StepKind::split_magnitudes, c);
          list_.add(StepKind::split, c);
          list_.add(StepKind::find_rounding_errors, c);
          list_.loop(StepKind::for_tiles, tiles_of(plan_, candidate(c), blocks), c, [&] {
            if (allows_error(plan_)) list_.add(StepKind::multiply_magnitudes, c);
            list_.add(StepKind::multiply, c);
            list_.add(StepKind::recombine_checked, c);
          });
        });
        if (c + 1 < products) list_.add(StepKind::advance_checks, c);
      }
      list_.add(StepKind::recompute, first);
    });
  }

  // Adds Algorithms 1 to 3 of dgemm-tc. The report counts an item at its end.
  void add_ozaki1() {
    list_.add(StepKind::find_ranges);
    list_.add(StepKind::select);
    list_.add(StepKind::count_slices);
    list_.loop(StepKind::for_blocks, blocking_, 0, [&] {
      list_.add(StepKind::split_successively);
      list_.loop(StepKind::for_tiles, {ozaki1_edge(plan_), ozaki1_edge(plan_)}, 0,
                 [&] { list_.add(StepKind::multiply_successively); });
    });
    list_.add(StepKind::finish_item);
    add_ends();
  }

  const Plan& plan_;
  const Blocking& blocking_;
  StepList list_;
};

// ---------------------------------------------------------------- on the host

class HostSteps {
 public:
  HostSteps(const Plan& plan, const Blocking& blocking) : plan_(plan), blocking_(blocking) {}

  std::vector<Step> make() {
    list_.loop(StepKind::for_items, {1, 1}, Step::no_candidate, [&] {
      if (plan_.is_native()) {
        list_.add(StepKind::multiply_natively);
        return;
      }
      list_.add(StepKind::find_ranges);
      list_.add(StepKind::select);
      for (int c = 0; c < static_cast<int>(plan_.candidates.size()); ++c) add_candidate(c);
      list_.add(StepKind::write_special_values);
    });
    return list_.take();
  }

 private:
  void add_candidate(int index) {
    const Candidate& candidate = plan_.candidates[static_cast<std::size_t>(index)];
    if (candidate.scheme == nullptr) {
      list_.add(StepKind::multiply_natively, index);
    } else if (candidate.checked) {
      if (&candidate == plan_.checked_candidate()) add_checked(index);
    } else if (candidate.program.recombination == Recombination::exact_sums) {
      if (!plan_.is_checked() || is_grid(plan_, index)) list_.add(StepKind::multiply_exactly, index);
    } else if (candidate.program.recombination == Recombination::ozaki1) {
      list_.add(StepKind::multiply_by_ozaki1, index);
    } else {
      list_.loop(StepKind::for_blocks, blocking_, index, [&] {
        for (const Step& step : block_steps(plan_, index)) list_.add(step.kind, index) = step;
      });
    }
  }

  // Adds the steps of all checked candidates and of the superaccumulator after them.
  void add_checked(int first) {
    list_.add(StepKind::choose_checked, first);
    list_.loop(StepKind::for_blocks, blocking_, first, [&] { list_.add(StepKind::multiply_checked, first); });
  }

  const Plan& plan_;
  const Blocking& blocking_;
  StepList list_;
};

}  // namespace

std::vector<Step> make_steps(const Plan& plan, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  if (std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0) return {};
  return plan.engine->is_device() ? DeviceSteps(plan, blocking).make() : HostSteps(plan, blocking).make();
}

namespace {

const char* condition_words(CallProperty property) {
  switch (property) {
    case CallProperty::never: return " for all operands";
    case CallProperty::always: return "";
    case CallProperty::reported: return " if a report is wanted";
    case CallProperty::overwrites_c: return " if beta is 0";
    case CallProperty::adds_to_c: return " if beta is not 0";
  }
  return "";
}

std::string line_of(const Plan& plan, const Step& step) {
  const auto candidate_words = [&](int index) -> std::string {
    if (index < 0) return {};
    const Candidate& candidate = plan.candidates[static_cast<std::size_t>(index)];
    return fmt::format(" {}", candidate.name());
  };
  const std::string name =
      step.kind == StepKind::fused ? std::string(step.kernel->name) : std::string(step_name(step.kind));
  switch (step.kind) {
    case StepKind::for_items: return fmt::format("{}: {} at once", name, step.size.m);
    case StepKind::find_ranges:
    case StepKind::find_norms:
    case StepKind::find_scaling_norms:
    case StepKind::summarize:
    case StepKind::select:
    case StepKind::scale:
    case StepKind::write_special_values: return name + condition_words(step.when);
    case StepKind::for_blocks:
    case StepKind::for_tiles:
      return fmt::format("{} of {} x {}:{}", name, step.size.m, step.size.n, candidate_words(step.candidate));
    default: break;
  }
  const std::string last = step.shared > 0 ? " to" + candidate_words(step.candidate + step.shared - 1) : "";
  return name + candidate_words(step.candidate) + last + condition_words(step.when);
}

void add_lines(const Plan& plan, std::span<const Step> steps, const std::string& indent,
               std::vector<std::string>& lines) {
  for_each_step(steps, [&](const Step& step, std::span<const Step> body) {
    lines.push_back(indent + line_of(plan, step));
    add_lines(plan, body, indent + "  ", lines);
  });
}

}  // namespace

std::vector<std::string> step_lines(const Plan& plan) {
  std::vector<std::string> lines;
  add_lines(plan, plan.steps, "", lines);
  return lines;
}

}  // namespace kintsugi::core
