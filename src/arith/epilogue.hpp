// The last step of every entry: alpha * sum + beta * C.
#pragma once

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// `sum` is the recombined product in scaled units, `exponent` undoes the scales. In double every
// step but the addition is exact for FP32 data (24 + 24 bits; |exponent| <= 326 keeps all powers
// normal), so what remains is one rounding to double and the final one to float.
// c points at the old entry, or is null when beta = 0: then it is not read.
KINTSUGI_HOST_DEVICE inline float epilogue(double sum, int exponent, float alpha, float beta,
                                           const float* c) {
  const double product = static_cast<double>(alpha) * (sum * power_of_two(exponent));
  if (c == nullptr) return static_cast<float>(product);
  return static_cast<float>(product + static_cast<double>(beta) * static_cast<double>(*c));
}

}  // namespace kintsugi::core
