// Decisions: the library's plan for a problem, or native, kept for later calls of the same problem.
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
  bool emulates = false;       // the library multiplies, by an emulation or on GPUs; else the next BLAS does
  bool may_be_native = false;  // data that no emulation accepts get the library's native product
  std::unique_ptr<kintsugi_plan_s, PlanDeleter> plan;  // the library's, if it multiplies
  std::string why;                                     // one sentence
};

// Returns the problem of a gemm whose arguments are right.
kintsugi_problem problem_of(const Call& call);

using Decided = drop_in::Found<Decision>;

// Returns the decision on a gemm whose arguments are right.
Decided decide(const Call& call);

}  // namespace kintsugi::blas
