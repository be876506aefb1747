// The ways to compute of a sweep, and their plans.
#pragma once

#include <string>
#include <vector>

#include "accuracy/sweep.hpp"
#include "gemm/product.hpp"
#include "lab/bound_check.hpp"

namespace kintsugi::tools {

// One way to compute: a row of every cell (shape, type, distribution, seed) of its type.
struct Method {
  Type type = Type::float32;
  std::string scheme;
  std::string engine;
  std::string accumulator;  // "" for native
};

// Combinations that there are not are left out; a scheme of which nothing is left is an error.
std::vector<Method> methods_of(const Sweep& sweep);

// C = A B, row-major and without padding.
kintsugi_problem row_major_problem(const Shape& shape, Type type);

using Plan = std::unique_ptr<kintsugi_plan_s, PlanDeleter>;
// C = A B, row-major. Throws LibraryError where the library makes no plan for it.
Plan make_plan(kintsugi_handle handle, const Shape& shape, const Method& method);
Json describe(const Plan& plan);

// C = A B by that plan.
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

// A split of a plan's description. Its words are those of `split`, which must live as long.
lab::SplitDescription description_of(const Json& split);

}  // namespace kintsugi::tools
