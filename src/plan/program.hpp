// Programs and schemes: what is computed, and under which name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "arith/split_rule.hpp"
#include "schedule/schedule.hpp"
#include "splits/ranges.hpp"

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

  // The same residual scaling on both sides, and its inverse on the groups of the cross terms.
  void set_residual_exponent(int exponent, std::span<const int> cross_groups) {
    split_a.residual_exponent = split_b.residual_exponent = exponent;
    for (const int group : cross_groups) schedule.group_exponents[group] = -exponent;
  }
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

  // A scheme with parameters: NAME:key=value,... runs the program that `configure` makes of this one's
  // for every key; false: it does not know the key or the value.
  std::string_view parameters = {};  // in words; empty: none
  bool (*configure)(Program& program, std::string_view key, std::string_view value) = nullptr;

  // Fits the program to the exponents of one batch entry's operands, or fails with
  // contract_unreachable where they are outside all that it covers.
  void (*adapt)(Program& program, const RangeSummary& a, const RangeSummary& b) = nullptr;
};

// All schemes, in the order of plan/schemes/registry.cpp.
std::span<const Scheme* const> all_schemes();

// The scheme of that name; with parameters, one that lives as long as the program. nullptr when there
// is no such scheme; fails with bad_setting for parameters that it does not take.
const Scheme* find_scheme(std::string_view name);

// "fp16, markidis, ...": for messages about unknown names.
std::string scheme_names();

}  // namespace kintsugi::core
