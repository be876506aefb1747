// What a contestant's result was held against.
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
  Json relative;        // coefficient of |A||B| that is allowed; null: C has to be correctly rounded
  Json largest_ratio;   // largest |error| of what is allowed; null likewise
  bool held = false;
};

// `allowed` gives an element's largest error. An error of 0 is that of right special values too.
template <class Allowed>
Verdict verdict_of(const std::string& promise, double relative,
                   const std::vector<lab::ElementError>& elements, const Allowed& allowed) {
  double largest = 0;
  for (const auto& element : elements) {
    if (element.error == 0) continue;
    const double ratio = std::fabs(element.error) / allowed(element);
    largest = std::isnan(ratio) ? HUGE_VAL : std::max(largest, ratio);
  }
  return {promise, relative, number(largest), largest <= 1};
}

}  // namespace kintsugi::tools
