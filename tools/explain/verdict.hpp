// Reasons why a scheme is selected for the problem, or why not. Each reason is one line.
#pragma once

#include <string>

#include "explain/scheme_row.hpp"

namespace kintsugi::tools {

// Programs that the two policies select for the problem.
struct Choices {
  Choice by_default;                // policy auto
  Choice emulating;                 // policy emulate
  int dynamic_range = 0;            // largest dynamic range of the operands' vectors, in binades
  std::int64_t special_values = 0;  // number of NaN and infinities in both operands
};

// Returns why the row's scheme is selected for the problem, or why it is not.
std::string verdict(const SchemeRow& row, const Choices& choices, const Contract& contract);

}  // namespace kintsugi::tools
