// ozaki2: integers below 2^b, one int8 product modulo each of N moduli, Chinese remainder theorem.
//
//   a' = RN(2^s_i a)  with max_p |a'_ip| <= 2^b            likewise the columns of B
//   a_t = a' mod m_t, between -128 and 127                 m = 256, 255, 253, 251, 247, ...
//   S_t = a_t b_t                                          int32, added up in 64 bits after 2^16 indices
//   S   = the integer of magnitude below M / 4 with S = S_t mod m_t for all t, M the product of the moduli
//   C   = RN(alpha 2^-(s_i + t_j) S + beta C)              exact but for this rounding
//
// b is the largest number with k 2^(2b) <= M / 4. It depends on N and k, but not on the data. If the rounding
// to integers keeps the last bits of all elements, C is correctly rounded. With scale=norm and scale=product,
// integers may be larger than 2^b, since norms or an int8 product of magnitudes prove that the sums stay
// below M / 4 (arith/residue/residue_scale.hpp).
#pragma once

#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"
#include "base/status.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

// Default numbers of moduli. They keep 55 bits of every row and column for FP64 operands at k = 4096, 28 bits
// for FP32 operands at k = 4096, and 106 bits for double-double operands at k = 1024.
inline constexpr int ozaki2_moduli_for_f64 = 16;
inline constexpr int ozaki2_moduli_for_f32 = 9;
inline constexpr int ozaki2_moduli_for_dd = 30;

constexpr int ozaki2_default_moduli(OperandType type) {
  return type == OperandType::dd    ? ozaki2_moduli_for_dd
         : type == OperandType::f32 ? ozaki2_moduli_for_f32
                                    : ozaki2_moduli_for_f64;
}

// The terms of all moduli. A program with fewer moduli has the first ones.
inline constexpr auto ozaki2_structure = [] {
  Structure<max_moduli> structure{.terms = {},
                                  .slices_a = max_moduli,
                                  .slices_b = max_moduli,
                                  .groups = max_moduli,
                                  .k_block = 65536,
                                  .k_step = 0};
  for (int t = 0; t < max_moduli; ++t) {
    const auto index = static_cast<std::int16_t>(t);
    structure.terms[t] = {.a = index, .b = index, .group = index};
  }
  return structure;
}();

constexpr Program ozaki2_program(int count, ScaleRule scales = ScaleRule::exponent) {
  SplitRule split = scaled_split(int8, {.slices = count});
  split.kind = SplitKind::residues;
  split.scales = scales;
  Program program{split, split, make_schedule(ozaki2_structure), Recombination::residues};
  Schedule& schedule = program.schedule;
  schedule.terms = schedule.terms.first(static_cast<std::size_t>(count));
  schedule.slices_a = schedule.slices_b = schedule.groups = count;
  for (int t = 0; t < count; ++t) schedule.group_moduli[t] = static_cast<std::int16_t>(moduli[t]);
  return program;
}

constexpr std::optional<ScaleRule> find_scale_rule(std::string_view name) {
  for (const ScaleRule rule : {ScaleRule::exponent, ScaleRule::norm, ScaleRule::product}) {
    if (scale_rule_name(rule) == name) return rule;
  }
  return std::nullopt;
}

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_ozaki2(Program& program, std::span<const Parameter> parameters) {
  std::optional<int> count;
  ScaleRule scales = ScaleRule::exponent;
  for (const Parameter& parameter : parameters) {
    const auto number = parse_parameter(parameter.value, 2, max_moduli);
    const auto rule = find_scale_rule(parameter.value);
    if (parameter.key == "moduli" && number) {
      count = number;
    } else if (parameter.key == "scale" && rule) {
      scales = *rule;
    } else {
      return &parameter;
    }
  }
  program = ozaki2_program(count.value_or(ozaki2_moduli_for_f64), scales);
  program.sized_by_type = !count;
  return nullptr;
}

inline void fit_ozaki2(Program& program, OperandType type, std::int64_t k) {
  const ScaleRule scales = program.split_a.scales;
  if (program.sized_by_type) program = ozaki2_program(ozaki2_default_moduli(type), scales);
  const int count = program.split_a.slices;
  const auto k_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k - 1)));  // k <= 2^k_bits
  const int bits = (residue_bits(count) - k_bits) / 2;
  if (bits < 1) {
    fail(Status::not_supported, "{} moduli hold {} bits, too few for sums of {} products", count,
         residue_bits(count), k);
  }
  program.split_a.top_exponent = program.split_b.top_exponent = bits - 1;
  if (scales == ScaleRule::product && bits < product_digits + 1) {
    fail(Status::not_supported, "{} moduli keep {} bits of sums of {} products; scale=product needs {}",
         count, bits, k, product_digits + 1);
  }
  program.split_a.sum_bits = program.split_b.sum_bits = residue_bits(count);
}

// Products of slice s of A and slice s of B, each with a sum of its own, for programs with several products a
// modulus.
inline constexpr auto ozaki2_products = [] {
  std::array<Term, max_groups> terms{};
  for (int t = 0; t < max_groups; ++t) {
    const auto index = static_cast<std::int16_t>(t);
    terms[t] = {.a = index, .b = index, .group = index};
  }
  return terms;
}();

// Changes a program of an embedding to a program that multiplies complex elements. The integers stay the
// same. They are reduced modulo a basis of complex residues that holds as many bits. Without such a basis the
// program is unchanged.
inline void multiply_elements_by_ozaki2(Program& program) {
  // The bases are kept, since a search takes 10 us and a plan has several programs.
  static const auto bases = [] {
    std::array<ComplexBasis, max_moduli + 1> found;
    for (int count = 1; count <= max_moduli; ++count) found[count] = cheapest_basis(residue_bits(count));
    return found;
  }();
  const ComplexBasis basis = bases[program.split_a.slices];
  if (basis.empty()) return;
  program.split_a.complex_basis = program.split_b.complex_basis = basis;
  program.split_a.slices = program.split_b.slices = basis.slices();
  Schedule& schedule = program.schedule;
  schedule.terms = std::span(ozaki2_products).first(static_cast<std::size_t>(basis.slices()));
  schedule.slices_a = schedule.slices_b = schedule.groups = basis.slices();
  for (int t = 0; t < basis.count(); ++t) {
    for (int s = basis.first_slice(t); s < basis.first_slice(t) + (basis.has_root(t) ? 2 : 3); ++s)
      schedule.group_moduli[s] = static_cast<std::int16_t>(basis.modulus(t));
  }
}

// Reduces the moduli to the fewest that determine sums of magnitudes up to 2^bits. Never adds moduli.
inline void leave_out_moduli(Program& program, int bits) {
  const bool multiplies_elements = program.multiplies_elements();
  int count = 2;
  while (count < max_moduli && residue_bits(count) < bits) ++count;
  if (residue_bits(count) < bits || residue_bits(count) >= program.split_a.sum_bits) return;
  Program fewer = ozaki2_program(count);
  fewer.split_a.top_exponent = fewer.split_b.top_exponent = program.split_a.top_exponent;
  fewer.split_a.sum_bits = fewer.split_b.sum_bits = residue_bits(count);
  program = fewer;
  if (multiplies_elements) multiply_elements_by_ozaki2(program);
}

inline constexpr Scheme ozaki2{
    .name = "ozaki2",
    .summary = "integers of b bits modulo N numbers, one int8 product each, Chinese remainder, one rounding",
    .operands = {OperandType::f32, OperandType::f64, OperandType::dd},
    .program =
        [] {
          Program program = ozaki2_program(ozaki2_moduli_for_f64);
          program.sized_by_type = true;
          return program;
        }(),
    .bound =
        "2^-1 (u_i ||b_j||_1 + v_j ||a_i||_1) + 2^-2 k u_i v_j, 2^(b-1) u_i <= max |a_ip| < 2^b u_i, v_j "
        "likewise; 0 where no element is rounded",
    .window =
        "correctly rounded where rows and columns span at most b - 53 binades (FP32: b - 24, "
        "double-double: to the last bit of lo), 2 b + log2 k <= log2 M - 3",
    .source = "Ozaki, Uchino and Imamura, Ozaki Scheme II (arXiv 2504.08009), scales from integers alone",
    .parameters = "moduli=2...49, scale=exponent, norm or product",
    .configure = configure_ozaki2,
    .fit = fit_ozaki2,
    .multiply_elements = multiply_elements_by_ozaki2,
};

}  // namespace kintsugi::core::schemes
