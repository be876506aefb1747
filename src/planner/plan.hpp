// Plans: the program, engine and blocking chosen for one problem under one contract.
#pragma once

#include <cstddef>
#include <cstdint>
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

// One step of a plan's fallback chain, cheapest first. What depends on the data is decided by their ranges
// when they are there: a batch item takes the first candidate whose window holds it.
struct Candidate {
  const Scheme* scheme = nullptr;  // nullptr: the engine's native product
  Accumulator accumulator = Accumulator::fp32;
  Acceptance acceptance{};
  Program program{};  // the scheme's, fitted to type and k
  // Every element is checked when it is there (execute/host/checked.hpp); then the last candidate of the
  // fallback chain is exact.
  bool checked = false;

  // The native product in an order that depends on shape and operands alone, by a program of ours; else the
  // vendor library's.
  bool fixed_order = false;

  // Of the scheme, where the plan set them.
  SchemeParameters parameters{};

  std::string scheme_name() const { return kintsugi::core::scheme_name(*scheme, parameters); }
};

// The scheme's program for a problem: of complex elements by the fewest products.
Program fitted_program(const Scheme& scheme, const Problem& problem);

// Block of C that is worked on at once; whole rows and columns of slices, never a part of k.
struct Blocking {
  std::int64_t m = 0;
  std::int64_t n = 0;
  // Workspace of a device's native product, which has no blocks: its speed depends on it, and nothing else.
  std::size_t native_scratch_bytes = 0;
  // Memory for sums of a device's native product where beta is not 0: they are looked at before C is
  // overwritten. More takes fewer steps, none a kernel of ours in cuBLAS's place.
  std::size_t native_sum_bytes = 0;

  bool operator==(const Blocking&) const = default;
};

struct Plan {
  static constexpr std::size_t most_candidates = 5;

  Problem problem;
  PlanRequest request;
  Contract contract;
  const Engine* engine = nullptr;
  DeviceContext context;  // where it was made, of an engine with devices: for that device alone
  std::vector<Candidate> candidates;
  // The candidate whose split a device gives to prepared operands, where that is not the first one's. The
  // plan that prepares an operand may be native, or begin with a candidate for likely operands alone; plans
  // that are told of a prepared operand begin with this one.
  std::optional<Candidate> candidate_when_prepared;
  Blocking blocking;
  std::size_t workspace_bytes = 0;
  int threads = 1;
  Allocator allocator;
  Queue queue;        // where executions run that name none
  Settings settings;  // in force when it was made: their text, for descriptions and messages
  // What the caller should know though the plan can run: an engine that would be quicker is missing.
  std::vector<std::string> warnings;

  bool is_native() const { return candidates.front().scheme == nullptr; }  // without an emulation before it

  // The accuracy as asked for, or the name of the operands' type.
  std::string accuracy_text() const;

  // The first candidate whose elements are checked, where there is one: then the last is exact.
  const Candidate* checked_candidate() const;
  bool is_checked() const { return checked_candidate() != nullptr; }

  const Candidate& prepared_candidate() const {
    return candidate_when_prepared ? *candidate_when_prepared : candidates.front();
  }

  // The candidate that splits with the widest window; nullptr for a native plan.
  const Candidate* widest_emulation() const;
};

// Fails with bad_setting (unknown names), engine_unavailable, not_supported,
// contract_unreachable or workspace_too_small, values in the message.
Plan make_plan(const Problem& problem, const Settings& settings, const Allocator& allocator,
               const Queue& queue = {});

// Scratch of the host's native product in a fixed order, which takes blocks for no more than threads.
std::size_t native_scratch_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Fails with engine_unavailable where the plan's engine could run when it was made and cannot now: in a
// forked child.
void check_engine_runs(const Plan& plan);

// Bytes that a plan needs with that blocking: the largest candidate's, exactly what execution takes.
std::size_t workspace_bytes(const Plan& plan, const Blocking& blocking);

// The largest blocking that fits the limit (0: none). Fails with workspace_too_small when not even
// the smallest does.
Blocking fit_blocking(const Plan& plan, std::size_t limit);

// The next smaller blocking of multiples of `multiple`, or the same when there is none.
Blocking smaller_blocking(const Blocking& blocking, std::int64_t multiple);

// Blocks start at multiples of this, so that the engine's tiles stay where they are. Fused products have the
// same bits on any tiles, and so have integers' (engines/device.hpp): theirs start wherever slices can be
// cut.
std::int64_t block_multiple(const Plan& plan);

}  // namespace kintsugi::core
