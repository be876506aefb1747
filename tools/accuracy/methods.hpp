// Methods of a sweep, and their plans.
#pragma once

#include <string>
#include <vector>

#include "accuracy/sweep.hpp"
#include "gemm/product.hpp"
#include "lab/bound_check.hpp"

namespace kintsugi::tools {

// A method of computing products. A sweep has a row of each method for every shape, distribution and seed.
struct Method {
  Type type = Type::float32;
  std::string scheme;
  std::string engine;
  std::string accumulator;  // "" for native
};

// Returns the methods of a sweep. Combinations of scheme, type, engine and accumulator that do not exist are
// left out. If no combination exists for a scheme, fails with --schemes in the message.
std::vector<Method> methods_of(const Sweep& sweep);

// Returns the problem C = A B, row-major and without padding.
kintsugi_problem row_major_problem(const Shape& shape, Type type);

using Plan = std::unique_ptr<kintsugi_plan_s, PlanDeleter>;
// Returns a plan of C = A B, row-major. Throws LibraryError if the library makes no plan for it.
Plan make_plan(kintsugi_handle handle, const Shape& shape, const Method& method);
Json describe(const Plan& plan);

// Computes C = A B by that plan.
template <class T>
kintsugi_status execute_product(kintsugi_handle handle, const Plan& plan, const T* a, const T* b, T* c) {
  const T one = 1;
  const T zero = 0;
  kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
  data.alpha = &one;
  data.a = a;
  data.b = b;
  data.beta = &zero;
  data.c = c;
  return kintsugi_plan_execute(handle, plan.get(), &data);
}

// Returns the split that a member of a plan's description describes. The result refers to strings of `split`,
// which must outlive it.
lab::SplitDescription description_of(const Json& split);

}  // namespace kintsugi::tools
