// Programs and schemes: what is computed, and by which name.
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

// Split into slices rounded to nearest, residuals multiplied by 2^residual_exponent, vectors not scaled.
constexpr SplitRule nearest_split(const Format& format, int slices, int residual_exponent = 0) {
  return {.format = &format,
          .slices = slices,
          .first_rounding = Rounding::nearest_even,
          .residual_rounding = Rounding::nearest_even,
          .residual_exponent = residual_exponent,
          .scale_vectors = false,
          .top_exponent = 0};
}

// Slices of scaled vectors: the largest magnitude of each vector is scaled into [2^top_exponent,
// 2^(top_exponent + 1)).
struct ScaledSlices {
  int slices = 1;
  int residual_exponent = 0;
  int top_exponent = 0;
};

// Like nearest_split(), for scaled vectors.
constexpr SplitRule scaled_split(const Format& format, const ScaledSlices& scaled) {
  SplitRule rule = nearest_split(format, scaled.slices, scaled.residual_exponent);
  rule.scale_vectors = true;
  rule.top_exponent = scaled.top_exponent;
  return rule;
}

// Split into int8 slices of vectors whose largest magnitudes are scaled into [2^6, 2^7). Each slice after the
// first is the rounded residual of all slices before it, multiplied by 2^residual_exponent.
constexpr SplitRule quantised_split(int slices, int residual_exponent) {
  return scaled_split(
      int8, {.slices = slices, .residual_exponent = residual_exponent, .top_exponent = int8.max_exponent});
}

// Split into digits of one grid, each of which uses all bits of the integer format.
constexpr SplitRule grid_split(const Format& format, int slices) {
  SplitRule rule = scaled_split(format, {.slices = slices,
                                         .residual_exponent = format.significand_bits + 1,
                                         .top_exponent = format.max_exponent});
  rule.kind = SplitKind::grid_digits;
  return rule;
}

// Method by which accumulators are combined into the result.
enum class Recombination : std::uint8_t {
  // Power-of-two weights, summed in double (integer accumulators: exactly), one rounding after alpha and
  // beta.
  weighted,
  // The integer with the given residues, by the Chinese remainder theorem; exact except for the last
  // rounding.
  residues,
  // Without slices and products of an engine: a superaccumulator sums every element, which is rounded once.
  exact_sums,
  // Exact products of slices (Ozaki scheme I), as many as the operands need, summed in FP64 or exactly:
  // Ozaki1Parameters.
  ozaki1,
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

// Parameters of Recombination::ozaki1 (execute/host/ozaki1.hpp). The split rules hold the largest number
// of slices, the schedule the products of one slice of B.
struct Ozaki1Parameters {
  // dp, sp: as many slices as Algorithm 3 of dgemm-tc expects to give the error of FP64 (dp) or FP32 (sp),
  // with sums in FP64. cr: slices until no residual is left, exact sums, one rounding. by_operand_type: sp
  // for FP32 operands, else dp.
  enum class Mode : std::uint8_t { by_operand_type, dp, sp, cr };

  static constexpr int max_slices = max_successive_slices;

  Mode mode = Mode::by_operand_type;
  int slices = 0;             // slices of each operand; 0: decided by the operands
  bool fast = true;           // only products of slices p and q with p + q <= d + 1, from 1
  std::int64_t block = 1024;  // largest number of rows and columns of a block with its own slice counts
  // For the error bound: the smallest number of slices of a vector that still has a residual after them, and
  // the largest number of products that are added to an element.
  int min_slices = 2;
  int max_products = max_slices * max_slices;
};

struct Program {
  SplitRule split_a;
  SplitRule split_b;
  Schedule schedule;
  Recombination recombination = Recombination::weighted;
  Ozaki1Parameters ozaki1{};
  bool sized_by_type = false;  // residues: the operands' type decides the number of moduli, not the caller
  // Residues: vectors are scaled as for words of 52 bits, so that the integers are those of the scheme int52.
  bool scales_as_words = false;

  const Format& format() const { return *split_a.format; }

  // Type of the sums that the engine returns. `reduces_sums_modulo`: the engine reduces sums of residues
  // modulo their modulus.
  SumType sum_type(bool reduces_sums_modulo = false) const {
    if (format().id == FormatId::int52) return SumType::i128;
    if (recombination == Recombination::residues && reduces_sums_modulo) return SumType::residue;
    if (schedule.tiles.depth > 0) return SumType::f32;
    return format().floating && !schedule.integer_sums ? SumType::f32 : SumType::i64;
  }

  // Moduli of the sums.
  ResidueSystem residue_system() const { return {split_a.slices, split_a.complex_basis}; }
  // True if complex elements are multiplied by residues of a basis: C then has one column of sums per column
  // of elements, instead of one per part as for an embedding.
  bool multiplies_elements() const { return !split_a.complex_basis.empty(); }

  // Sets the scale of the residuals of both operands, and its inverse as the weight of each group of cross
  // terms.
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

// Returns the whole number that `value` spells, from min to max; nothing for any other text.
std::optional<int> parse_parameter(std::string_view value, int min, int max);

// A program with a name, from the literature or this project; one file each in this folder.
struct Scheme {
  std::string_view name;
  std::string_view summary;
  OperandTypes operands;
  Program program;
  std::string_view bound;   // text for readers; schemes/bound.hpp computes the bound
  std::string_view window;  // inputs on which only the bound's relative part counts
  std::string_view source;

  // A scheme with parameters: NAME:key=value:... runs the program that `configure` makes of this scheme's. It
  // returns the first parameter that the scheme does not have, or nullptr.
  std::string_view parameters = {};  // text for readers; empty: no parameters
  const Parameter* (*configure)(Program& program, std::span<const Parameter> parameters) = nullptr;

  // Fits the program to the operands' type and the inner length k (> 0).
  void (*fit)(Program& program, OperandType type, std::int64_t k) = nullptr;

  // Changes the fitted program of an embedding to one that multiplies complex elements by fewer products.
  void (*multiply_elements)(Program& program) = nullptr;

  // Fits the program to the exponents of one batch item's operands, or fails with contract_unreachable if the
  // program does not cover them.
  void (*adapt)(Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k) = nullptr;
  // Groups whose weight undoes the residuals' scale, for schemes whose `adapt` is fit_residual()
  // (arith/residual_fit.hpp). A device computes that fit itself, and fails for exponents that the format does
  // not have.
  std::span<const int> fitted_groups = {};

  bool fits_residuals() const { return !fitted_groups.empty(); }
};

// Parameters of a scheme that the planner sets itself. A scheme's name may set others (find_scheme()).
struct SchemeParameters {
  int moduli = 0;  // 0: not set
  ScaleRule scale = ScaleRule::exponent;
  int block = 0;  // 0: not set
};

// Returns the name by which a caller can request a scheme with these parameters:
// "ozaki2:moduli=14:scale=norm".
std::string scheme_name(const Scheme& scheme, const SchemeParameters& parameters);

// `program`, which is the scheme's own or one with other parameters, fitted to operands of that type and sums
// of k products.
Program fitted_program(const Scheme& scheme, Program program, OperandType type, std::int64_t k);

// Returns the scheme's own program, fitted to that type and k.
Program fitted_program(const Scheme& scheme, OperandType type, std::int64_t k);

// All schemes, in the order of schemes/registry.cpp.
std::span<const Scheme* const> all_schemes();

// Returns the scheme of that name; with parameters, a scheme that lives until the process ends. nullptr if
// there is no such scheme; fails with bad_setting for parameters that the scheme does not take.
const Scheme* find_scheme(std::string_view name);

// "fp16, markidis, ...", for messages about unknown names.
std::string scheme_names();

}  // namespace kintsugi::core
