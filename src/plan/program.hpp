// Programs and schemes: what is computed, and under which name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "arith/split_rule.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core {

// Slices rounded to nearest, residuals multiplied by 2^residual_exponent, vectors not scaled.
constexpr SplitRule nearest_split(const Format& format, int slices, int residual_exponent = 0) {
  return {.format = &format,
          .slices = slices,
          .first_rounding = Rounding::nearest_even,
          .residual_rounding = Rounding::nearest_even,
          .residual_exponent = residual_exponent,
          .scale_vectors = false,
          .top_exponent = 0};
}

// The same of vectors whose largest magnitudes are scaled into [2^top_exponent, 2^(top_exponent + 1)).
constexpr SplitRule scaled_split(const Format& format, int slices, int residual_exponent, int top_exponent) {
  SplitRule rule = nearest_split(format, slices, residual_exponent);
  rule.scale_vectors = true;
  rule.top_exponent = top_exponent;
  return rule;
}

// How accumulators become the result.
enum class Recombination : std::uint8_t {
  weighted,  // power-of-two weights, summed in double, one rounding after alpha and beta
};

// The type of operands that a scheme splits.
enum class OperandType : std::uint8_t { f32, f64 };

struct Program {
  SplitRule split_a;
  SplitRule split_b;
  Schedule schedule;
  Recombination recombination = Recombination::weighted;

  const Format& format() const { return *split_a.format; }
};

// A program named in the literature or by us; one file each in plan/schemes/.
struct Scheme {
  std::string_view name;
  std::string_view summary;
  OperandType operands;
  Program program;
  std::string_view bound;   // in words and formulas, for people; plan/bound.hpp computes it
  std::string_view window;  // inputs on which the bound's relative part alone holds
  std::string_view source;
};

// All schemes, in the order of plan/schemes/registry.cpp.
std::span<const Scheme* const> all_schemes();

// nullptr when there is no scheme of that name.
const Scheme* find_scheme(std::string_view name);

// "fp16, markidis, ...": for messages about unknown names.
std::string scheme_names();

}  // namespace kintsugi::core
