// Sums of two doubles rounded up or down. The host needs rounding to nearest and no contraction to fused
// operations.
#pragma once

#include <cmath>
#include <limits>

#include "arith/host_device.hpp"
#include "formats/error_free.hpp"

namespace kintsugi::core {

// x + y rounded up.
KINTSUGI_HOST_DEVICE inline double sum_above(double x, double y) {
#ifdef __CUDA_ARCH__
  return __dadd_ru(x, y);
#else
  const ValueAndError<double> sum = two_sum(x, y);
  return sum.error > 0 ? std::nextafter(sum.value, std::numeric_limits<double>::infinity()) : sum.value;
#endif
}

// x + y rounded down.
KINTSUGI_HOST_DEVICE inline double sum_below(double x, double y) {
#ifdef __CUDA_ARCH__
  return __dadd_rd(x, y);
#else
  const ValueAndError<double> sum = two_sum(x, y);
  return sum.error < 0 ? std::nextafter(sum.value, -std::numeric_limits<double>::infinity()) : sum.value;
#endif
}

}  // namespace kintsugi::core
