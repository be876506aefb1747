// Verdict on a contestant's result: whether it keeps its promise.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

struct Verdict {
  std::string promise;  // "exact", "contract" or "bound"
  Json relative;        // allowed coefficient of |A||B|; null: C must be correctly rounded
  Json largest_ratio;   // largest |error| relative to the allowed one; null: C must be correctly rounded
  bool held = false;
};

// Returns the verdict on the elements of a product. allowed(element) returns the largest error that an
// element may have. It may be NaN, as for special values; an error of 0 is always allowed.
template <class Allowed>
Verdict verdict_of(const std::string& promise, double relative,
                   const std::vector<measure::ElementError>& elements, const Allowed& allowed) {
  double largest = 0;
  for (const auto& element : elements) {
    if (element.error == 0) continue;
    const double ratio = std::fabs(element.error) / allowed(element);
    largest = std::max(largest, std::isnan(ratio) ? HUGE_VAL : ratio);
  }
  return {.promise = promise, .relative = relative, .largest_ratio = number(largest), .held = largest <= 1};
}

}  // namespace kintsugi::tools
