// Plans: candidates, engine and blocking for one problem under one contract.
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

// One candidate of a plan's fallback chain, which is sorted cheapest first. When the ranges of a batch item
// are known, the first candidate that accepts its operands is selected.
struct Candidate {
  const Scheme* scheme = nullptr;  // nullptr: the engine's native product
  Accumulator accumulator = Accumulator::fp32;
  Acceptance acceptance{};
  Program program{};  // the scheme's, fitted to operand type and k
  // True: every element is checked when it is computed (execute/host/checked.hpp). The last candidate of the
  // fallback chain, which computes the elements that no check proves, is then exact.
  bool checked = false;

  // Native candidates only. True: a program of ours adds, in an order that depends on shape and operands
  // alone. False: the vendor library multiplies.
  bool fixed_order = false;

  // Parameters of the scheme that the plan set, in place of those of the scheme's name.
  SchemeParameters parameters{};

  std::string scheme_name() const { return kintsugi::core::scheme_name(*scheme, parameters); }
};

// Returns the scheme's program for a problem; for complex elements the one with the fewest products.
Program fitted_program(const Scheme& scheme, const Problem& problem);

// Size of the blocks of C, which are computed one after the other. Slices are cut between vectors, never
// along k.
struct Blocking {
  std::int64_t m = 0;  // rows of a block
  std::int64_t n = 0;  // columns of a block
  // A native product on a device is not computed in blocks. It has two pieces of memory in their place:
  // scratch of the vendor library, on which only its speed depends, and
  std::size_t native_scratch_bytes = 0;
  // memory for sums if beta is not 0, since they are tested before C is overwritten. With more memory fewer
  // steps are needed; with none a kernel of ours replaces cuBLAS.
  std::size_t native_sum_bytes = 0;

  bool operator==(const Blocking&) const = default;
};

struct Plan {
  static constexpr std::size_t max_candidates = 5;

  Problem problem;
  PlanRequest request;
  Contract contract;
  const Engine* engine = nullptr;
  DeviceContext context;  // context in which a device's plan was made; it runs on that device only
  std::vector<Candidate> candidates;  // the fallback chain
  // Candidate whose split this plan applies to an operand that a device prepares; empty: the first of
  // `candidates`. Plans that multiply by a prepared operand begin with this candidate. This plan, which
  // prepares the operand, may be another one: it is native where only the saved split makes emulation faster,
  // and it may begin with a faster candidate that accepts by mean depth, which is not kept for prepared
  // operands.
  std::optional<Candidate> candidate_when_prepared;
  Blocking blocking;
  std::size_t workspace_bytes = 0;
  int threads = 1;
  // True if the plan emulates and the call is expected to take at most a few time slices of the scheduler. On
  // a busy machine its loops then run on one thread (ShortCall of base/threads/workers.hpp).
  bool is_short_call = false;
  Allocator allocator;
  Queue queue;        // used by executions that name no queue
  Settings settings;  // settings in force when the plan was made; descriptions and messages quote them
  // Warnings for the caller, though the plan can run: for example a faster engine is missing.
  std::vector<std::string> warnings;

  // Plan of the engine cpu for the same call, if this one multiplies matrices of the host on devices: it
  // computes the elements that the devices do not. The other members are then those of a product in device
  // memory, except for the problem's memory.
  std::shared_ptr<const Plan> host_plan;
  std::string offload_words;  // one sentence on the choice between host and devices; empty: none was made

  bool is_offloaded() const { return host_plan != nullptr; }
  // True if the plan has no emulation: a native product is the last candidate of a chain, so that no other
  // one follows if it is the first.
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

// True for reproducible products whose first candidate is the grid; later candidates are correctly rounded.
inline bool begins_with_grid(const Plan& plan) {
  return plan.request.is_reproducible() && plan.problem.type != OperandType::dd;
}

// Makes a plan. Fails with bad_setting (unknown names), engine_unavailable, not_supported,
// contract_unreachable or workspace_too_small; the message has the values.
Plan make_plan(const Problem& problem, const Settings& settings, const Allocator& allocator,
               const Queue& queue = {});

// Makes the plan of the same call on an engine's current device for matrices in its memory.
Plan make_device_plan(const Problem& problem, const Settings& settings, const Engine& engine);

// Makes the plan that the settings would give if the policy `auto` expected every emulation to be faster than
// the native product: calibration measures such plans.
Plan make_emulating_plan(const Problem& problem, const Settings& settings);

// Circumstances on which a plan depends besides its problem, settings and allocator: if all of these are
// equal in two calls, so are the plans.
struct PlanSurroundings {
  DeviceContext context;  // context of the calling thread; empty for host matrices
  int threads = 1;        // threads that OpenMP offers the calling thread
  int fork_depth = 0;     // number of forks between the loading of the library and this process

  friend bool operator==(const PlanSurroundings&, const PlanSurroundings&) = default;
};
PlanSurroundings surroundings_of(const Problem& problem);

// True if the plan's engine has no devices, or the plan was made in the calling thread's context. Needed for
// host matrices: a named engine may copy them to a device, and the surroundings have no context then, since
// no driver is asked before an engine is selected.
bool runs_in_callers_context(const Plan& plan);

// Scratch bytes of the host's native product in a fixed order: at most one block of C for each thread.
std::size_t native_scratch_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Fails with engine_unavailable if the plan's engine can no longer run, as in a forked child.
void check_engine_runs(const Plan& plan);

// Returns the bytes of workspace that an execution with that blocking takes: those of the candidate that
// needs most.
std::size_t workspace_bytes(const Plan& plan, const Blocking& blocking);

// Returns the largest blocking that fits the limit (0: no limit). Fails with workspace_too_small if even the
// smallest one does not fit.
Blocking fit_blocking(const Plan& plan, std::size_t limit);

// Returns the next smaller blocking, of rows and columns that are multiples of `multiple`; the same blocking
// if it is the smallest.
Blocking smaller_blocking(const Blocking& blocking, std::int64_t multiple);

// Returns the number of which the rows and columns of every block are multiples. If bits depend on an
// engine's tiles, it is the tile, so that blocking does not move the tiles. Fused and integer products have
// the same bits on any tiles (engines/device.hpp): their blocks begin wherever slices can be cut.
std::int64_t block_multiple(const Plan& plan);

}  // namespace kintsugi::core
