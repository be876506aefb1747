// Programs and schemes: what is computed, and under which name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "arith/residual_fit.hpp"
#include "arith/slice_count.hpp"
#include "arith/split_rule.hpp"
#include "formats/int8.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/schedule.hpp"
#include "split/ranges.hpp"

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

// int8 slices of scaled vectors, largest magnitudes in [2^6, 2^7): every slice the rounded rest of those
// before it, 2^residual_exponent above its place.
constexpr SplitRule quantised_split(int slices, int residual_exponent) {
  return scaled_split(int8, slices, residual_exponent, int8.max_exponent);
}

// Digits of one grid, of all bits that the integer format has.
constexpr SplitRule grid_split(const Format& format, int slices) {
  SplitRule rule = scaled_split(format, slices, format.significand_bits + 1, format.max_exponent);
  rule.kind = SplitKind::fixed;
  return rule;
}

// How accumulators become the result.
enum class Recombination : std::uint8_t {
  // Power-of-two weights, summed in double (integer accumulators: exactly), one rounding after alpha and
  // beta.
  weighted,
  // The integer with these residues, by the Chinese remainder theorem; exact but for the one last rounding.
  residues,
  // No slices and no products of an engine: every element by a superaccumulator, rounded once.
  exact_sums,
  // Products of slices without an error, as many as the operands ask for, summed in FP64 or exactly:
  // ErrorFree.
  error_free,
};

enum class OperandType : std::uint8_t { f32, f64, dd };

constexpr const char* type_name(OperandType type) {
  return type == OperandType::f32 ? "fp32" : type == OperandType::f64 ? "fp64" : "dd";
}

// The types of operands that a scheme splits.
class OperandTypes {
 public:
  constexpr OperandTypes(OperandType type) : bits_(bit(type)) {}
  constexpr OperandTypes(std::initializer_list<OperandType> types) {
    for (const OperandType type : types) bits_ |= bit(type);
  }
  constexpr bool contains(OperandType type) const { return (bits_ & bit(type)) != 0; }

 private:
  static constexpr unsigned bit(OperandType type) { return 1U << static_cast<unsigned>(type); }

  unsigned bits_ = 0;
};

// What Recombination::error_free asks for (execute/host/ozaki1.hpp). The split rules have the most slices,
// the schedule the products of one slice of B.
struct ErrorFree {
  // dp, sp: so many slices that Algorithm 3 of dgemm-tc expects the error of FP64 (FP32), sums in FP64.
  // cr: slices until nothing is left, exact sums, one rounding.
  enum class Mode : std::uint8_t { of_type, dp, sp, cr };

  static constexpr int most_slices = most_successive_slices;

  Mode mode = Mode::of_type;
  int slices = 0;             // of each operand; 0: found
  bool fast = true;           // products p + q <= d + 1 alone, counted from 1
  std::int64_t block = 1024;  // rows and columns of C, at most, that have a number of slices of their own
  // For the bound: slices that are taken at least unless nothing is left before, products that are added at
  // most.
  int least_slices = 2;
  int most_products = most_slices * most_slices;
};

struct Program {
  SplitRule split_a;
  SplitRule split_b;
  Schedule schedule;
  Recombination recombination = Recombination::weighted;
  ErrorFree error_free{};
  bool sized_by_type = false;  // residues: nobody said how many moduli

  const Format& format() const { return *split_a.format; }

  // What leaves an engine that reduces residues' sums, or does not.
  SumType sum_type(bool reduces_sums = false) const {
    if (format().id == FormatId::int52) return SumType::i128;
    if (recombination == Recombination::residues && reduces_sums) return SumType::residue;
    return format().floating && !schedule.integer_sums ? SumType::f32 : SumType::i64;
  }

  // What their sums are residues of.
  ResidueSystem residue_system() const { return {split_a.slices, split_a.complex_basis}; }
  // Columns of sums for each of a complex C's: of an embedding, the parts.
  bool multiplies_elements() const { return !split_a.complex_basis.empty(); }

  // The same residual scaling on both sides, and its inverse on the groups of the cross terms.
  void set_residual_exponent(int exponent, std::span<const int> cross_groups) {
    split_a.residual_exponent = split_b.residual_exponent = exponent;
    for (const int group : cross_groups) schedule.group_exponents[group] = -exponent;
  }
  void set_residual_fit(const ResidualFit& fit, std::span<const int> cross_groups) {
    set_residual_exponent(fit.residual_exponent, cross_groups);
    split_a.first_rounding = split_b.first_rounding = fit.first_rounding;
  }
};

struct Parameter {
  std::string_view key;
  std::string_view value;
};

// A whole number from least to most; nothing for any other text.
std::optional<int> parse_parameter(std::string_view value, int least, int most);

// A program named in the literature or by us; one file each in plan/schemes/.
struct Scheme {
  std::string_view name;
  std::string_view summary;
  OperandTypes operands;
  Program program;
  std::string_view bound;   // in words and formulas, for people; schemes/bound.hpp computes it
  std::string_view window;  // inputs on which the bound's relative part alone holds
  std::string_view source;

  // A scheme with parameters: NAME:key=value:... runs the program that `configure` makes of this one's. It
  // returns the first parameter that it does not take, or nullptr.
  std::string_view parameters = {};  // in words; empty: none
  const Parameter* (*configure)(Program& program, std::span<const Parameter> parameters) = nullptr;

  // Fits the program to the operands' type and the inner length k (> 0).
  void (*fit)(Program& program, OperandType type, std::int64_t k) = nullptr;

  // What the fitted program of an embedding becomes where complex elements are multiplied by fewer products.
  void (*multiply_elements)(Program& program) = nullptr;

  // Fits the program to the exponents of one batch item's operands, or fails with
  // contract_unreachable where they are outside all that it covers.
  void (*adapt)(Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k) = nullptr;
  // Where `adapt` is fit_residual() (arith/residual_fit.hpp), which a device does itself: the groups whose
  // weight undoes the residuals' scale. It fails from exponents on that the format does not have.
  std::span<const int> fitted_groups = {};

  bool fits_residuals() const { return !fitted_groups.empty(); }
};

// Parameters of a scheme that a plan sets by itself; the others are those of the scheme's own name.
struct SchemeParameters {
  int moduli = 0;  // 0: not set
  ScaleRule scale = ScaleRule::exponent;
  int block = 0;  // 0: not set
};

// The name by which a caller may ask for the same: "ozaki2:moduli=14:scale=norm".
std::string scheme_name(const Scheme& scheme, const SchemeParameters& parameters);

// The program, which is the scheme's with some parameters, for operands of that type and sums of k products.
Program fitted_program(const Scheme& scheme, Program program, OperandType type, std::int64_t k);

// The scheme's own program for the same.
Program fitted_program(const Scheme& scheme, OperandType type, std::int64_t k);

// All schemes, in the order of schemes/registry.cpp.
std::span<const Scheme* const> all_schemes();

// The scheme of that name; with parameters, one that lives as long as the program. nullptr when there
// is no such scheme; fails with bad_setting for parameters that it does not take.
const Scheme* find_scheme(std::string_view name);

// "fp16, markidis, ...": for messages about unknown names.
std::string scheme_names();

}  // namespace kintsugi::core
