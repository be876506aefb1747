// Checks results of a device against the bound of a contract.
#pragma once

#include <limits>
#include <string>

#include "gpu/calls/device_stream.hpp"
#include "support/complex_reference.hpp"

namespace kintsugi::test {

// Expects |error| <= coefficient (|A||B|)_ij plus the smallest subnormal, the last rounding included.
template <class T>
void expect_errors_within(GemmDataOf<T>& data, double coefficient) {
  const double smallest = std::numeric_limits<T>::denorm_min();
  for (std::int64_t t = 0; t < data.test().batch; ++t) {
    for (const lab::ElementError& element : element_errors(data, {}, t)) {
      ASSERT_LE(std::abs(element.error), coefficient * element.absolute + smallest)
          << "element " << element.i << ", " << element.j << " of batch item " << t;
    }
  }
}

// The parts of a complex C are checked as columns of the embedding's real product.
template <class T>
void expect_within(const GemmCase& test, double coefficient, const DeviceRun& run = {}) {
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
    expect_errors_within(parts, coefficient);
  } else {
    expect_errors_within(data, coefficient);
  }
}

}  // namespace kintsugi::test
