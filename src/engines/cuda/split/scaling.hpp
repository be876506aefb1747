// Scale factors of one vector, and the test whether the kernels' fast arithmetic splits it exactly.
#pragma once

#include <cstdint>
#include <limits>

#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/residue/residue.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

struct Scaling {
  // Factors whose product is 2^scale; for digits, 2^scale times the grid's factor.
  double first = 1;
  double second = 1;
  std::int32_t scale = 0;
  // True if the kernels' FP32 or integer arithmetic gives the vector's slices. False if each element must be
  // split by arith/split_rule.hpp.
  bool plain = false;
  bool left_out = false;  // true: the vector's slices will not be used and are not written
};

KINTSUGI_HOST_DEVICE constexpr bool is_floating(ElementKind kind) {
  return kind == ElementKind::fp16 || kind == ElementKind::fp16_with_depth || kind == ElementKind::fitted ||
         kind == ElementKind::bf16 || kind == ElementKind::tf32;
}

// True if the residual before every slice fits in the format and in FP32, for a vector whose elements have
// magnitudes of at most 2^bound.
KINTSUGI_HOST_DEVICE constexpr bool residuals_fit(const SplitRule& rule, const Format& format, int bound) {
  for (int s = 0; s < rule.slices; ++s) {
    if (bound > format.max_exponent) return false;
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    // Exponent of the rounding error: 1/2 ulp of numbers below 2^bound, or 1 ulp if bits are cut off.
    int error_exponent = bound - 1 - format.significand_bits;
    if (error_exponent < format.min_quantum() - 1) error_exponent = format.min_quantum() - 1;
    if (rounding != Rounding::nearest_even) ++error_exponent;
    if (rounding == Rounding::bit_cut && error_exponent < format.min_exponent)
      error_exponent = format.min_exponent;
    bound = error_exponent + rule.residual_exponent;  // that of the next residual
  }
  return true;
}

// Largest bound for which residuals_fit() is true; it is then true for all smaller bounds. The host computes
// it once, except for fitted rules, so that kernels need not search for it.
KINTSUGI_HOST_DEVICE constexpr std::int32_t largest_fitting_bound(const SplitRule& rule,
                                                                  const Format& format) {
  for (int bound = format.max_exponent; bound >= format.min_quantum(); --bound) {
    if (residuals_fit(rule, format, bound)) return bound;
  }
  return std::numeric_limits<std::int32_t>::min();
}

// True if FP32 arithmetic splits the vector exactly as the host's double arithmetic does. FP32 holds x
// 2^scale exactly if its magnitude is at least 2^-126, or if the scale is not negative. The residual of a
// rounding is a smaller multiple of the same last place, so it is exact as well.
KINTSUGI_HOST_DEVICE constexpr bool is_plain_floating(const VectorRange& range, std::int32_t largest_bound) {
  if (!range.finite()) return false;
  if ((range.flags & VectorRange::all_zero) != 0) return true;
  if (range.scale < 0 && range.smallest + range.scale < -126) return false;
  return range.largest + range.scale + 1 <= largest_bound;
}

// Scaling of a vector by its range. `largest_bound` is largest_fitting_bound() of the rule and its format.
KINTSUGI_HOST_DEVICE constexpr Scaling scaling_of(ElementKind kind, const VectorRange& range,
                                                  const SplitRule& rule, std::int32_t largest_bound) {
  const bool floating = is_floating(kind);
  const int exponent =
      range.scale + (kind == ElementKind::digits ? (rule.slices - 1) * rule.residual_exponent : 0);
  const TwoFactors factors = two_factors(exponent);
  return {.first = factors.first,
          .second = factors.second,
          .scale = range.scale,
          .plain = floating ? is_plain_floating(range, largest_bound) : range.finite(),
          .left_out = false};
}

}  // namespace kintsugi::core::cuda
