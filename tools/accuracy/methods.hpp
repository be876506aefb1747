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

// A split of a plan's description. Its words are those of `split`, which must live as long.
lab::SplitDescription description_of(const Json& split);

}  // namespace kintsugi::tools
