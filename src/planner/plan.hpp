// Plans: the program, engine and blocking chosen for one problem under one contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "base/queue.hpp"
#include "base/settings.hpp"
#include "engines/device_context.hpp"
#include "engines/engine.hpp"
#include "planner/contract/contract.hpp"
#include "planner/contract/request.hpp"
#include "planner/problem.hpp"
#include "schedule/accumulator.hpp"
#include "schemes/program.hpp"
#include "split/acceptance.hpp"

namespace kintsugi::core {

// One candidate of a plan's fallback chain, which is sorted cheapest first. A batch item takes the first
// candidate that accepts its data, decided when ranges are known.
struct Candidate {
  const Scheme* scheme = nullptr;  // nullptr: the engine's native product
  Accumulator accumulator = Accumulator::fp32;
  Acceptance acceptance{};
  Program program{};  // the scheme's, fitted to operand type and k
  // Every element is checked once it is computed (execute/host/checked.hpp); then the last candidate of the
  // fallback chain is exact.
  bool checked = false;

  // True: the native product by a program of ours in an order that depends on shape and operands alone.
  // False: the vendor library's.
  bool fixed_order = false;

  // Parameters of the scheme that the plan set.
  SchemeParameters parameters{};

  std::string scheme_name() const { return kintsugi::core::scheme_name(*scheme, parameters); }
};

// Returns the scheme's program for a problem; for complex elements the one with the fewest products.
Program fitted_program(const Scheme& scheme, const Problem& problem);

// Rows and columns of a block of C that is computed at once; slices are cut between vectors, never along k.
struct Blocking {
  std::int64_t m = 0;
  std::int64_t n = 0;
  // Workspace of a device's native product, which has no blocks; only its speed depends on this size.
  std::size_t native_scratch_bytes = 0;
  // Memory for the sums of a device's native product if beta is not 0: sums are tested before C is
  // overwritten. With more memory fewer steps are needed; with none a kernel of ours replaces cuBLAS.
  std::size_t native_sum_bytes = 0;

  bool operator==(const Blocking&) const = default;
};

struct Plan {
  static constexpr std::size_t max_candidates = 5;

  Problem problem;
  PlanRequest request;
  Contract contract;
  const Engine* engine = nullptr;
  DeviceContext context;  // where a device's plan was made; it runs on that device only
  std::vector<Candidate> candidates;
  // The candidate by whose split a device prepares operands, if that is not the first candidate. The plan
  // that prepares an operand may be native, or begin with a candidate for likely operands alone; plans for a
  // prepared operand begin with this one.
  std::optional<Candidate> candidate_when_prepared;
  Blocking blocking;
  std::size_t workspace_bytes = 0;
  int threads = 1;
  bool is_short = false;  // an emulation that is expected to take at most a few time slices of the scheduler
  Allocator allocator;
  Queue queue;        // used by executions that name no queue
  Settings settings;  // settings in force when the plan was made; descriptions and messages quote them
  // Warnings for the caller, though the plan can run: for example a faster engine is missing.
  std::vector<std::string> warnings;

  // Plan of the engine cpu for the same call, if this one multiplies matrices of the host on devices: it
  // computes what the devices do not. The members above are those of a product in device memory then, but for
  // the problem's memory.
  std::shared_ptr<const Plan> host_plan;
  std::string offload_words;  // one sentence on the choice between host and devices; empty: none was made

  bool is_offloaded() const { return host_plan != nullptr; }
  bool is_native() const { return candidates.front().scheme == nullptr; }  // no emulation comes before it

  // Accuracy as the caller set it, or the name of the operands' type.
  std::string accuracy_text() const;

  // Returns the first candidate whose elements are checked, or nullptr. With one, the last candidate is
  // exact.
  const Candidate* checked_candidate() const;
  bool is_checked() const { return checked_candidate() != nullptr; }

  const Candidate& prepared_candidate() const {
    return candidate_when_prepared ? *candidate_when_prepared : candidates.front();
  }

  // Returns the emulation with the widest window; nullptr for a native plan.
  const Candidate* widest_emulation() const;
};

// Makes a plan. Fails with bad_setting (unknown names), engine_unavailable, not_supported,
// contract_unreachable or workspace_too_small; the message has the values.
Plan make_plan(const Problem& problem, const Settings& settings, const Allocator& allocator,
               const Queue& queue = {});

// Makes the plan of the same call on an engine's current device for matrices in its memory.
Plan make_device_plan(const Problem& problem, const Settings& settings, const Engine& engine);

// Makes the plan that the settings would give if the policy `auto` expected every emulation to be faster than
// the native product: calibration measures such plans.
Plan make_emulating_plan(const Problem& problem, const Settings& settings);

// Circumstances that a plan depends on besides its problem, settings and allocator: calls for which all of
// these are equal get equal plans.
struct PlanSurroundings {
  DeviceContext context;  // the calling thread's, of matrices in device memory that an engine can reach
  int threads = 1;        // that OpenMP offers the calling thread
  int fork_depth = 0;     // base/threads/fork.hpp

  friend bool operator==(const PlanSurroundings&, const PlanSurroundings&) = default;
};
PlanSurroundings surroundings_of(const Problem& problem);

// True if the plan's engine has no devices, or works in the calling thread's context. For host matrices the
// surroundings do not tell, since no driver is asked before an engine is chosen.
bool runs_in_callers_context(const Plan& plan);

// Scratch bytes of the host's native product in a fixed order, which holds a block for each thread at most.
std::size_t native_scratch_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Fails with engine_unavailable if the plan's engine cannot run any more, as in a forked child.
void check_engine_runs(const Plan& plan);

// Bytes that a plan needs with that blocking: those of its largest candidate, exactly what execution takes.
std::size_t workspace_bytes(const Plan& plan, const Blocking& blocking);

// Returns the largest blocking that fits the limit (0: no limit). Fails with workspace_too_small if even the
// smallest one does not fit.
Blocking fit_blocking(const Plan& plan, std::size_t limit);

// Returns the next smaller blocking in multiples of `multiple`, or the same one if there is none.
Blocking smaller_blocking(const Blocking& blocking, std::int64_t multiple);

// Rows and columns at whose multiples blocks start, so that blocking does not move the engine's tiles. Fused
// and integer products have the same bits on any tiles (engines/device.hpp), so their blocks start wherever
// slices can be cut.
std::int64_t block_multiple(const Plan& plan);

}  // namespace kintsugi::core
