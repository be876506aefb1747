// The split of one element: a sum of scaled slices, each the rounded rest of those before it.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// x * 2^scale = sum over s of slice_s * 2^(-s * residual_exponent) + error, with
//   slice_0 = round(x * 2^scale),  rest_1 = (x * 2^scale - slice_0) * 2^residual_exponent, ...
// All steps but the roundings are exact in double: the rest of a rounding has no more bits than x.
struct SplitRule {
  const Format* format;
  int slices;
  Rounding first_rounding;
  Rounding residual_rounding;
  int residual_exponent;
  // Each vector along k (a row of op(A), a column of op(B)) is multiplied by the power of two that
  // brings its largest magnitude into [2^top_exponent, 2^(top_exponent + 1)); else scale is 0.
  bool scale_vectors;
  int top_exponent;

  friend constexpr bool operator==(const SplitRule&, const SplitRule&) = default;
};

// Calls store(s, pattern) for every slice of the finite value x.
template <class Store>
KINTSUGI_HOST_DEVICE constexpr void split_element(const SplitRule& rule, double x, int scale, Store&& store) {
  double rest = x * power_of_two(scale);
  for (int s = 0; s < rule.slices; ++s) {
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    const std::uint64_t pattern = encode(*rule.format, rest, rounding);
    store(s, pattern);
    rest = (rest - decode(*rule.format, pattern)) * power_of_two(rule.residual_exponent);
  }
}

}  // namespace kintsugi::core
