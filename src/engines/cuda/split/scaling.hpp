// Scale factors of one vector, and whether the hardware's arithmetic gives its slices.
#pragma once

#include <cstdint>
#include <limits>

#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/residue/residue.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

struct Scaling {
  double first = 1;  // 2^scale in two factors; for digits 2^scale times the grid's factor
  double second = 1;
  std::int32_t scale = 0;
  bool plain = false;     // false: elements are split by arith/split_rule.hpp
  bool left_out = false;  // true: the vector's slices will not be used
};

KINTSUGI_HOST_DEVICE constexpr bool is_floating(ElementKind kind) {
  return kind == ElementKind::fp16 || kind == ElementKind::fp16_with_depth || kind == ElementKind::fitted ||
         kind == ElementKind::bf16 || kind == ElementKind::tf32;
}

// True if all residuals of a vector fit in the format and in FP32, where its elements are at most 2^bound in
// magnitude.
KINTSUGI_HOST_DEVICE constexpr bool residuals_fit(const SplitRule& rule, const Format& format, int bound) {
  for (int s = 0; s < rule.slices; ++s) {
    if (bound > format.max_exponent) return false;
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    // Exponent of the rounding error: 1/2 ulp of numbers below 2^bound, 1 ulp where bits are cut off.
    int error = bound - 1 - format.significand_bits;
    if (error < format.min_quantum() - 1) error = format.min_quantum() - 1;
    if (rounding != Rounding::nearest_even) ++error;
    if (rounding == Rounding::bit_cut && error < format.min_exponent) error = format.min_exponent;
    bound = error + rule.residual_exponent;
  }
  return true;
}

// Largest bound for which residuals_fit() is true, as it is for all smaller bounds. The host computes it
// once, except for fitted rules, so that kernels compare instead of searching.
KINTSUGI_HOST_DEVICE constexpr std::int32_t largest_fitting_bound(const SplitRule& rule,
                                                                  const Format& format) {
  for (int bound = format.max_exponent; bound >= format.min_quantum(); --bound) {
    if (residuals_fit(rule, format, bound)) return bound;
  }
  return std::numeric_limits<std::int32_t>::min();
}

// True if FP32 arithmetic splits the vector exactly as the host's double arithmetic does. FP32 holds x
// 2^scale exactly from 2^-126 on, and everywhere if the scale is not negative; the residual of a rounding is
// a smaller multiple of the same last place, and so exact too.
KINTSUGI_HOST_DEVICE constexpr bool is_plain_floating(const VectorRange& range, std::int32_t largest_bound) {
  if (!range.finite()) return false;
  if ((range.flags & VectorRange::all_zero) != 0) return true;
  if (range.scale < 0 && range.smallest + range.scale < -126) return false;
  return range.largest + range.scale + 1 <= largest_bound;
}

// Scaling of a vector by its range. largest_bound: largest_fitting_bound() of the rule and its format.
KINTSUGI_HOST_DEVICE constexpr Scaling scaling_of(ElementKind kind, const VectorRange& range,
                                                  const SplitRule& rule, std::int32_t largest_bound) {
  const bool floating = is_floating(kind);
  const int exponent =
      range.scale + (kind == ElementKind::digits ? (rule.slices - 1) * rule.residual_exponent : 0);
  const TwoFactors factors = two_factors(exponent);
  return {factors.first, factors.second, range.scale,
          floating ? is_plain_floating(range, largest_bound) : range.finite(), false};
}

}  // namespace kintsugi::core::cuda
