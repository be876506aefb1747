// Decisions on calls: emulation, by the plan for a problem on a device, or cuBLAS. They are kept for later
// calls of the same problem.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstddef>
#include <memory>
#include <string>

#include "call.hpp"
#include "common/kept.hpp"

namespace kintsugi::cublas {

struct PlanDeleter {
  void operator()(kintsugi_plan plan) const { kintsugi_plan_destroy(plan); }
};

struct Decision {
  bool emulates = false;                               // false: the real cuBLAS multiplies
  std::unique_ptr<kintsugi_plan_s, PlanDeleter> plan;  // set if `emulates`
  std::size_t workspace_bytes = 0;                     // of the plan
  std::string candidates;                              // names of the plan's programs, cheapest first
  std::string why;                                     // one sentence on the decision
  bool is_final = true;  // false if the next call of the problem may be decided otherwise
};

// The state of the caller's handle and thread that a call depends on.
struct CallState {
  void* stream = nullptr;
  int pointer_mode = 0;  // cublasPointerMode_t, whose numbers are those of kintsugi_pointer_mode
  int device = 0;        // CUdevice of the current context
};

using Decided = drop_in::Found<Decision>;

// Returns the reason in alpha and beta for which cuBLAS answers a call that was decided to be emulated;
// nullptr: there is none.
const char* reason_in_scalars(const Call& call, const CallState& state);

// Returns the decision on a call for which reason_to_forward() has no reason.
Decided decide(const Call& call, const CallState& state);

}  // namespace kintsugi::cublas
