// Decisions, each on one problem on one device: emulation by a plan, or cuBLAS. Decisions are kept for later
// calls.
#pragma once

#include <kintsugi/kintsugi.h>

#include <atomic>
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
  std::size_t workspace_bytes = 0;                     // workspace of the plan
  std::string candidates;                              // names of the plan's programs, cheapest first
  std::string why;                                     // one sentence on the decision
  std::string not_kept;  // what of the settings the decision does not keep, and why; "": it keeps them
  bool is_final = true;  // false if the next call of the problem may be decided otherwise
  // Set if there was no memory for a captured call. Later captured calls are forwarded, too: a program that
  // updates an executable graph captures its calls again, and must get the same kernels.
  std::unique_ptr<std::atomic<bool>> forwards_captured = std::make_unique<std::atomic<bool>>(false);
};

// State of the caller's handle and thread.
struct CallState {
  void* stream = nullptr;
  int pointer_mode = 0;  // cublasPointerMode_t, whose numbers are those of kintsugi_pointer_mode
  int device = 0;        // CUdevice of the current context
};

using DecisionPointer = drop_in::ValuePointer<Decision>;

// Returns the decision on a call for which reason_to_forward() has no reason.
DecisionPointer decide(const Call& call, const CallState& state);

}  // namespace kintsugi::cublas
