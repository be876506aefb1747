// Decisions, each on one problem: the library's plan, or native. Decisions are kept for later calls.
#pragma once

#include <kintsugi/kintsugi.h>

#include <memory>
#include <string>

#include "call.hpp"
#include "common/kept.hpp"

namespace kintsugi::blas {

struct PlanDeleter {
  void operator()(kintsugi_plan plan) const { kintsugi_plan_destroy(plan); }
};

struct Decision {
  bool emulates = false;  // Kintsugi multiplies, by an emulation or on GPUs; false: the next BLAS multiplies
  bool may_be_native = false;  // the plan multiplies operands natively that no emulation accepts
  std::unique_ptr<kintsugi_plan_s, PlanDeleter> plan;  // nullptr unless `emulates`
  std::string why;                                     // one sentence
  std::string not_kept;  // what of the settings the decision does not keep, and why; "": it keeps them
};

// Returns the problem of a gemm whose arguments are right.
kintsugi_problem problem_of(const Call& call);

using DecisionPointer = drop_in::ValuePointer<Decision>;

// Returns the decision on a gemm whose arguments are right.
DecisionPointer decide(const Call& call);

// The same for a call of `symbol` that follows the decision: tells the user if it does not keep the
// settings.
DecisionPointer decide_and_note(const char* symbol, const Call& call);

}  // namespace kintsugi::blas
