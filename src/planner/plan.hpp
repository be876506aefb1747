// Plans: candidates, engine and blocking for one problem under one contract.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "base/queue.hpp"
#include "base/settings.hpp"
#include "base/view.hpp"
#include "engines/cuda/device.hpp"
#include "engines/engine.hpp"
#include "engines/fused_kernel.hpp"
#include "planner/contract.hpp"
#include "planner/problem.hpp"
#include "schedule/accumulator.hpp"
#include "schemes/program.hpp"
#include "split/acceptance.hpp"

namespace kintsugi::core {

// One candidate of a plan's fallback chain, which begins with the cheapest one. Each batch item selects the
// first candidate that accepts the item's ranges.
struct Candidate {
  const Scheme* scheme = nullptr;  // nullptr: the engine's native product
  Accumulator accumulator = Accumulator::fp32;
  Acceptance acceptance{};
  Program program{};  // the scheme's program, fitted to operand type and k
  // True: every element of C is checked after it is computed (execute/host/checked.hpp). The chain of a
  // checked candidate ends with an exact candidate, which computes the elements that no check proves.
  bool checked = false;

  // For native candidates. True: Kintsugi multiplies in a fixed order (docs/TERMS.md). False: the vendor
  // library multiplies.
  bool fixed_order = false;

  // Parameters with which the plan replaces those of the scheme's name.
  SchemeParameters parameters{};

  std::string scheme_name() const { return kintsugi::core::scheme_name(*scheme, parameters); }
  std::string name() const { return scheme == nullptr ? "native" : scheme_name(); }
};

// Returns the scheme's program for a problem; for complex elements the program with the fewest products.
Program fitted_program(const Scheme& scheme, const Problem& problem);

// Size of the blocks of C, which are computed one after the other. A block contains all of k.
struct Blocking {
  std::int64_t m = 0;  // rows of a block
  std::int64_t n = 0;  // columns of a block
  // Scratch of the vendor library for native products on a device, which are not computed in blocks. It
  // affects only their speed.
  std::size_t native_scratch_bytes = 0;

  bool operator==(const Blocking&) const = default;
};

// Property of a call that the planner does not know, and on which a step depends.
enum class CallProperty : std::uint8_t {
  never,
  always,
  reported,      // a report is wanted
  overwrites_c,  // beta is 0
  adds_to_c,     // beta is not 0
};

// One step of a plan (planner/steps.hpp).
struct Step {
  static constexpr std::int16_t no_candidate = -1;  // for loops whose steps belong to several candidates

  StepKind kind{};
  CallProperty when = CallProperty::always;      // when the step runs
  CallProperty selected = CallProperty::always;  // when it depends on the selection of its candidate
  // Index among the plan's candidates, or DeviceSelection::none for the step that writes NaN.
  std::int16_t candidate = 0;
  std::int16_t shared = 0;    // number of candidates that share the step, from `candidate` on; 0: one has it
  std::int16_t length = 0;    // loops: number of steps in the body
  std::int16_t variant = -1;  // fused kernels on a device: index in Plan::variants, for whole blocks
  bool finds_ranges = false;  // splits: the ranges were not found before
  bool keeps_last = false;    // recombine: the last tile is recombined by recombine_last
  bool overlaps = false;      // select: its kernel may overlap the products before it
  Blocking size{};            // loops: rows and columns of a block or tile; m is the number of items
  const FusedKernel* kernel = nullptr;

  // Index of the last of the candidates that share the step, which has the most moduli.
  int last_candidate() const { return shared > 0 ? candidate + shared - 1 : candidate; }
};

struct Plan {
  static constexpr std::size_t max_candidates = 7;

  Problem problem;
  PlanRequest request;
  Contract contract;
  RoundingMode rounding = RoundingMode::nearest;  // of C's elements
  const Engine* engine = nullptr;
  DeviceContext context;  // context in which a device's plan was made; the plan runs only on that device
  std::vector<Candidate> candidates;  // the fallback chain
  // Candidate whose split is applied to an operand that a device prepares by this plan; empty: the first of
  // `candidates`. It is the first candidate of the later plan that multiplies the prepared operand. The later
  // plan may begin with another candidate than this plan. First, this plan is native if only a saved split
  // makes emulation faster. Second, candidates that accept by mean depth are not used for prepared operands.
  std::optional<Candidate> candidate_when_prepared;
  Blocking blocking;
  std::vector<Step> steps;  // of an execution with this blocking
  std::vector<FusedVariant> variants;
  std::size_t workspace_bytes = 0;
  int threads = 1;
  MatrixUnitState unit = MatrixUnitState::steady;  // by which the plan was decided
  // True if the plan emulates and the call is expected to take no more than a few time slices of the
  // operating system. On a busy machine, loops of a short call run on one thread (ShortCall of
  // base/threads.hpp).
  bool is_short_call = false;
  Allocator allocator;
  Queue queue;        // used by executions that name no queue
  Settings settings;  // settings with which the plan was made; descriptions and messages quote them
  // Warnings for the caller about a plan that can run, for example that a faster engine is missing.
  std::vector<std::string> warnings;

  // Plan of the engine cpu for the same call, if this plan multiplies host matrices on devices. The engine
  // cpu computes the elements that the devices do not compute. All other members then describe a product in
  // device memory, except problem.memory.
  std::shared_ptr<const Plan> host_plan;
  std::string
      offload_words;  // one sentence on the choice between host and devices; empty: there was no choice

  CallConditions conditions() const { return {.threads = threads, .unit = unit}; }
  bool is_offloaded() const { return host_plan != nullptr; }
  // True if the plan has no emulation. A native candidate is always the last one of its chain, so only the
  // first candidate is tested.
  bool is_native() const { return candidates.front().scheme == nullptr; }

  // Accuracy as the caller set it, or the name of the operands' type.
  std::string accuracy_text() const;

  // Returns the first candidate whose elements are checked; nullptr if the plan has none.
  const Candidate* checked_candidate() const;
  bool is_checked() const { return checked_candidate() != nullptr; }

  // Returns the candidate whose split a device applies to an operand that this plan prepares.
  const Candidate& prepared_candidate() const {
    return candidate_when_prepared ? *candidate_when_prepared : candidates.front();
  }

  // Returns the emulation with the widest window; nullptr for a native plan.
  const Candidate* widest_emulation() const;
};

// True if the plan is reproducible and its first candidate is the grid. Later candidates round correctly.
inline bool begins_with_grid(const Plan& plan) {
  return plan.request.is_reproducible() && plan.problem.type != OperandType::dd;
}
inline bool is_grid(const Plan& plan, int candidate) { return candidate == 0 && begins_with_grid(plan); }

// Makes a plan. Fails with bad_setting (unknown names), engine_unavailable, not_supported,
// contract_unreachable or workspace_too_small; the message has the values.
Plan make_plan(const Problem& problem, const Settings& settings, const Allocator& allocator,
               const Queue& queue = {});

// Makes the plan of the same call on this engine, whichever the settings name: on the current device of an
// engine with devices, for matrices in its memory.
Plan make_plan_on(const Problem& problem, const Settings& settings, const Engine& engine);

// Makes the plan that would result if the policy `auto` expected every emulation to be faster than native.
// Calibration measures such plans.
Plan make_emulating_plan(const Problem& problem, const Settings& settings);

// All that a plan depends on besides problem, settings and allocator.
struct PlanSurroundings {
  DeviceContext context;  // context of the calling thread; empty for host matrices
  int threads = 1;        // threads that OpenMP offers the calling thread
  int fork_depth = 0;     // number of forks between the loading of the library and this process

  friend bool operator==(const PlanSurroundings&, const PlanSurroundings&) = default;
};
PlanSurroundings surroundings_of(const Problem& problem);

// True if the plan's engine has no devices, or if the plan was made in the context of the calling thread.
// PlanSurroundings do not contain the context of a call with host matrices. A named engine may copy host
// matrices to a device, so a kept plan for host matrices must be tested by this function.
bool runs_in_callers_context(const Plan& plan);

// Fails with engine_unavailable if the plan's engine can no longer run, as in a forked child.
void check_engine_runs(const Plan& plan);

}  // namespace kintsugi::core
