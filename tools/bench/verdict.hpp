// Verdict on a contestant's result: did it keep its promise?
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

struct Verdict {
  std::string promise;  // "exact", "contract" or "bound"
  Json relative;        // allowed coefficient of |A||B|; null: C must be correctly rounded
  Json largest_ratio;   // largest |error| relative to the allowed one; null likewise
  bool held = false;
};

// Returns the verdict. allowed(element) returns the largest error that the element may have. The error of
// right special values is 0.
template <class Allowed>
Verdict verdict_of(const std::string& promise, double relative,
                   const std::vector<lab::ElementError>& elements, const Allowed& allowed) {
  double largest = 0;
  for (const auto& element : elements) {
    if (element.error == 0) continue;
    const double ratio = std::fabs(element.error) / allowed(element);
    largest = std::isnan(ratio) ? HUGE_VAL : std::max(largest, ratio);
  }
  return {.promise = promise, .relative = relative, .largest_ratio = number(largest), .held = largest <= 1};
}

}  // namespace kintsugi::tools
