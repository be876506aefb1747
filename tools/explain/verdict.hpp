// Why a scheme is chosen for the problem, or why it is not: a line each.
#pragma once

#include <string>

#include "explain/scheme_row.hpp"

namespace kintsugi::tools {

// The two policies' choices for operands of the widest span.
struct Choices {
  Choice by_default;  // policy auto
  Choice emulating;   // policy emulate
  int span = 0;
  std::int64_t specials = 0;  // NaN and infinities among the elements
};

std::string verdict(const SchemeRow& row, const Choices& choices, const Contract& contract);

}  // namespace kintsugi::tools
