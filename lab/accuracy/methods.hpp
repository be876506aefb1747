// Methods of a sweep, and their plans.
#pragma once

#include <string>
#include <vector>

#include "lab/accuracy/sweep.hpp"
#include "tools/gemm/product.hpp"
#include "tools/measure/bound_check.hpp"

namespace kintsugi::tools {

// Returns the methods of a sweep. Combinations of scheme, type, engine and accumulator that do not exist are
// left out. If no combination exists for a scheme, fails with --schemes in the message.
std::vector<Method> methods_of(const Sweep& sweep);

}  // namespace kintsugi::tools
