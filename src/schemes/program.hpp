// Programs (what is computed) and schemes (programs with names).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "arith/split_rule.hpp"
#include "arith/successive.hpp"
#include "formats/formats.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/schedule.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {

// Returns a split into slices rounded to nearest. Residuals are multiplied by 2^residual_exponent. Vectors
// are not scaled.
constexpr SplitRule nearest_split(const Format& format, int slices, int residual_exponent = 0) {
  return {.format = &format,
          .slices = slices,
          .first_rounding = Rounding::nearest_even,
          .residual_rounding = Rounding::nearest_even,
          .residual_exponent = residual_exponent,
          .scale_vectors = false,
          .top_exponent = 0};
}

// Slices of scaled vectors. The largest magnitude of each vector is scaled into [2^top_exponent,
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

// Returns a split into int8 slices of vectors whose largest magnitudes are scaled into [2^6, 2^7). Each slice
// after the first is the rounded residual of all slices before it, multiplied by 2^residual_exponent.
constexpr SplitRule quantised_split(int slices, int residual_exponent) {
  return scaled_split(
      int8, {.slices = slices, .residual_exponent = residual_exponent, .top_exponent = int8.max_exponent});
}

// Returns a split into digits of one grid. Each digit uses all bits of the integer format.
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
  // No slices, no engine: a superaccumulator sums every element exactly, with one rounding.
  exact_sums,
  // FP32 sums of k-blocks; elements that are not accepted are computed in FP32. One fused kernel does all
  // steps (arith/direct_arithmetic.hpp).
  direct_sums,
  // Ozaki scheme I: exact products of slices, summed in FP64 or exactly (Ozaki1Parameters). The operands
  // decide the number of slices.
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

// Parameters of Recombination::ozaki1 (execute/host/steps.hpp). The program's split rules have the largest
// number of slices. The program's schedule has the products of one slice of B.
struct Ozaki1Parameters {
  enum class Mode : std::uint8_t {
    by_operand_type,  // sp for FP32 operands, else dp
    dp,  // Algorithm 3 of dgemm-tc chooses the number of slices for an error like that of FP64; FP64 sums
    sp,  // Algorithm 3 of dgemm-tc chooses the number of slices for an error like that of FP32; FP64 sums
    cr,  // elements are split until no residual is left; sums are exact and rounded once
  };

  static constexpr int max_slices = max_successive_slices;

  Mode mode = Mode::by_operand_type;
  int slices = 0;    // slices of each operand; 0: the operands decide
  bool fast = true;  // true: only products of slices p and q with p + q <= d + 1; p and q count from 1
  std::int64_t block = 1024;  // largest number of rows and columns of a block with its own slice counts
  // The last two members are for the error bound.
  int min_slices = 2;  // smallest number of slices of a vector that has a residual after them
  int max_products = max_slices * max_slices;  // largest number of products that are added to an element
};

struct Program {
  SplitRule split_a;
  SplitRule split_b;
  Schedule schedule;
  Recombination recombination = Recombination::weighted;
  Ozaki1Parameters ozaki1{};
  bool sized_by_type = false;  // residues: the operands' type decides the number of moduli, not the caller
  // Residues and exact sums: vectors are rounded to integers that are those of the scheme int52.
  bool scales_as_words = false;
  // True if the caller gave the residuals' exponent: operands that would need a lower one are refused.
  bool keeps_residual_exponent = false;

  const Format& format() const { return *split_a.format; }

  // Returns the type of the sums that the engine returns. `reduces_sums_modulo`: the engine reduces sums of
  // residues by their modulus.
  SumType sum_type(bool reduces_sums_modulo = false) const {
    if (format().id == FormatId::int52) return SumType::i128;
    if (recombination == Recombination::residues && reduces_sums_modulo) return SumType::residue;
    if (schedule.tiles.depth > 0) return SumType::f32;
    return format().floating && !schedule.integer_sums ? SumType::f32 : SumType::i64;
  }

  // Moduli of the sums.
  ResidueSystem residue_system() const { return {split_a.slices, split_a.complex_basis}; }
  // True if complex elements are multiplied by residues of a basis. Each column of C then has one column of
  // sums; with an embedding it has two, one for each part.
  bool multiplies_elements() const { return !split_a.complex_basis.empty(); }

  // Sets the scale of both operands' residuals, and the inverse scale as the weight of each group of cross
  // terms.
  void set_residual_exponent(int exponent, std::span<const int> cross_groups) {
    split_a.residual_exponent = split_b.residual_exponent = exponent;
    for (const int group : cross_groups) schedule.group_exponents[group] = -exponent;
  }
  // Returns the largest exponent of operands whose residuals can be fitted (fit_residual()).
  int largest_fitted_exponent() const {
    int largest = format().max_exponent;
    const int exponent = split_a.residual_exponent;
    while (keeps_residual_exponent && fit_residual(format(), exponent, largest).residual_exponent < exponent)
      --largest;
    return largest;
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

// A program with a name, from the literature or from this project. This folder has one file for each scheme.
struct Scheme {
  std::string_view name;
  std::string_view summary;
  OperandTypes operands;
  Program program;
  std::string_view bound;   // description of the bound for readers; schemes/bound.hpp computes the bound
  std::string_view window;  // description of the inputs for which only the bound's relative part counts
  std::string_view source;

  std::string_view parameters = {};  // description of the parameters for readers; empty: no parameters
  // Changes the program as the parameters in the name NAME:key=value:... say. Returns the first parameter
  // that the scheme refuses; nullptr if there is none.
  const Parameter* (*configure)(Program& program, std::span<const Parameter> parameters) = nullptr;

  // Fits the program to the operands' type and the inner length k (> 0).
  void (*fit)(Program& program, OperandType type, std::int64_t k) = nullptr;

  // Changes the fitted program of an embedding to one that multiplies complex elements by fewer products.
  void (*multiply_elements)(Program& program) = nullptr;

  // Fits the program to the exponents of one batch item's operands. Fails with contract_unreachable if the
  // program cannot represent them.
  void (*adapt)(Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k) = nullptr;
  // Groups whose weight undoes the residuals' scale. Set for schemes whose `adapt` is fit_residual()
  // (arith/split_rule.hpp). A device makes this fit itself, and fails for exponents that the format does
  // not have.
  std::span<const int> fitted_groups = {};

  bool fits_residuals() const { return !fitted_groups.empty(); }
};

// Parameters of a scheme that the planner sets. A scheme's name may set other ones (find_scheme()).
struct SchemeParameters {
  int moduli = 0;  // 0: not set
  ScaleRule scale = ScaleRule::exponent;
  int block = 0;  // 0: not set
  int tile = 0;   // 0: not set
};

// Returns the name by which a caller can request a scheme with these parameters:
// "ozaki2:moduli=14:scale=norm".
std::string scheme_name(const Scheme& scheme, const SchemeParameters& parameters);

// Returns `program` fitted to operands of the type and to sums of k products. `program`: the scheme's
// program, possibly with other parameters.
Program fitted_program(const Scheme& scheme, Program program, OperandType type, std::int64_t k);

// Returns the scheme's program fitted to operands of the type and to sums of k products.
Program fitted_program(const Scheme& scheme, OperandType type, std::int64_t k);

// Returns all schemes, in the order of schemes/registry.cpp.
std::span<const Scheme* const> all_schemes();

// Returns the scheme of that name; nullptr if there is none. A name may have parameters. Fails with
// bad_setting if the scheme refuses a parameter. All schemes live until the process ends.
const Scheme* find_scheme(std::string_view name);

// Returns "fp16, markidis, ...", for messages about unknown names.
std::string scheme_names();

}  // namespace kintsugi::core

namespace kintsugi::core::schemes {

// The parameter `block`, which sets k_block. It is for schemes whose partial sums may be added outside the
// engine after any multiple of 64 inner indices.

inline constexpr std::string_view block_parameter =
    "block=64...65536, a multiple of 64: indices of k whose sum is added outside the engine at once";

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_block(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const auto block = parse_parameter(parameter.value, 64, 65536);
    if (parameter.key != "block" || !block || *block % 64 != 0) return &parameter;
    program.schedule.k_block = *block;
    program.schedule.most_halvings = 0;
  }
  return nullptr;
}

inline bool takes_block(const Scheme& scheme) { return scheme.configure == &configure_block; }

// Returns the scheme's program with a k_block of `block` for all problems.
inline Program program_in_blocks(const Scheme& scheme, int block) {
  Program program = scheme.program;
  program.schedule.k_block = block;
  program.schedule.most_halvings = 0;
  return program;
}

}  // namespace kintsugi::core::schemes
