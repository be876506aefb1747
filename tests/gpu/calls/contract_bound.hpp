// Checks results of a device against the bound of a contract.
#pragma once

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/calls/device_stream.hpp"
#include "support/complex_reference.hpp"

namespace kintsugi::test {

// Expects |error| <= coefficient (|A||B|)_ij + underflow, the last rounding included. `underflow` is at least
// the smallest subnormal. With it, sums that may overflow on the way have no bound, as in native arithmetic.
// `parts`: 2 for the real embedding of a complex product, where columns 2 j and 2 j + 1 are parts of an
// element; alpha's imaginary part, 0, times one part's infinity is NaN in the other part.
template <class T>
void expect_errors_within(GemmDataOf<T>& data, double coefficient, double underflow = 0, int parts = 1) {
  const double smallest = std::max<double>(std::numeric_limits<T>::denorm_min(), underflow);
  for (std::int64_t t = 0; t < data.test().batch; ++t) {
    const std::vector<measure::ElementError> elements = element_errors(data, {}, t);
    std::set<std::pair<std::int64_t, std::int64_t>> overflowing;  // row and column of C
    for (const measure::ElementError& element : elements) {
      if (underflow > 0 && element.absolute > static_cast<double>(std::numeric_limits<T>::max()) / 4)
        overflowing.emplace(element.i, element.j / parts);
    }
    for (const measure::ElementError& element : elements) {
      if (overflowing.contains({element.i, element.j / parts})) continue;
      ASSERT_LE(std::abs(element.error), coefficient * element.absolute + smallest)
          << "element " << element.i << ", " << element.j << " of batch item " << t;
    }
  }
}

// The parts of a complex C are checked as columns of the embedding's real product.
template <class T>
void expect_within(const GemmCase& test, double coefficient, const DeviceRun& run = {},
                   double underflow = 0) {
  SCOPED_TRACE(describe(test));
  GemmDataOf<T> data(test);
  DeviceGemm<T>(data, run).run_well();
  if constexpr (core::is_complex<T>) {
    auto parts = embedded(data);
    for (std::int64_t j = 0; j < test.n; ++j) {
      for (std::int64_t i = 0; i < test.m; ++i) {
        parts.c()(i, 2 * j) = data.c()(i, j).real();
        parts.c()(i, 2 * j + 1) = data.c()(i, j).imag();
      }
    }
    expect_errors_within(parts, coefficient, underflow, 2);
  } else {
    expect_errors_within(data, coefficient, underflow);
  }
}

}  // namespace kintsugi::test
