// Reasons why a scheme is selected for the problem or not, one line each.
#pragma once

#include <string>

#include "explain/scheme_row.hpp"

namespace kintsugi::tools {

// Programs that the two policies select for the problem; `span` is its largest dynamic range.
struct Choices {
  Choice by_default;  // policy auto
  Choice emulating;   // policy emulate
  int span = 0;
  std::int64_t specials = 0;  // number of NaN and infinities
};

std::string verdict(const SchemeRow& row, const Choices& choices, const Contract& contract);

}  // namespace kintsugi::tools
