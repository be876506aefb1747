// Exponents of the operands of a random call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tests/support/fuzz_data.hpp"

namespace kintsugi::test {

// The real and imaginary parts, or the high and low words, of a value; or the value itself.
template <class T>
std::vector<double> parts_of_value(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return {static_cast<double>(value)};
  } else if constexpr (is_complex_element<T>) {
    return {value.real(), value.imag()};
  } else {
    return {value.hi, value.lo};
  }
}

// True if all scalars and elements are finite, and no sum of k products, before or after it is multiplied by
// alpha, can leave the normal range.
template <class T>
bool exponents_exclude_exceptions(const FuzzData<T>& data) {
  const FuzzCase& test = data.test();
  const int limit = is_single_type(test.type) ? 100 : 950;
  int min_exponent = 0, max_exponent = 0;  // of a product of the factors added so far
  bool finite = test.special_c == 0;
  const auto add_factor = [&](const auto& element_of, std::int64_t rows, std::int64_t columns) {
    int smallest = 1 << 20, largest = -(1 << 20);
    for (std::int64_t item = 0; item < test.batch; ++item) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          for (const double part : parts_of_value(element_of(item, i, j))) {
            finite = finite && std::isfinite(part);
            if (part == 0 || !std::isfinite(part)) continue;
            smallest = std::min(smallest, std::ilogb(part));
            largest = std::max(largest, std::ilogb(part));
          }
        }
      }
    }
    if (largest < smallest) return;
    finite = finite && -limit <= smallest && largest < limit;  // alpha may be multiplied by an operand first
    min_exponent += smallest;
    max_exponent += largest + 1;
  };
  add_factor([&](auto item, auto i, auto p) { return data.a(item, i, p); }, test.m, test.k);
  add_factor([&](auto item, auto p, auto j) { return data.b(item, p, j); }, test.k, test.n);
  const int growth_of_sum = std::ilogb(static_cast<double>(test.k)) + 2;
  const auto is_in_range = [&] { return -limit <= min_exponent && max_exponent + growth_of_sum <= limit; };
  const bool sums_in_range = is_in_range();
  add_factor([&](auto, auto, auto) { return data.alpha(); }, 1, 1);
  for (const double part : parts_of_value(data.beta())) finite = finite && std::isfinite(part);
  return finite && sums_in_range && is_in_range();
}

}  // namespace kintsugi::test
