// Residues of complex integers: products modulo m by fewer than four real products of residues.
//
// Two real products are enough if -1 has a square root w modulo m. Then a + i b is represented by the two
// numbers a + w b and a - w b. The product of two factors' a + w b and the product of their a - w b represent
// the complex product. All other m need three real products. With A = a a', B = b b' and S = (a + b)(a' + b')
// the complex product is (A - B) + i (S - A - B). In both cases sums over k may replace single products.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

#include "arith/residue/residue.hpp"

namespace kintsugi::core {

namespace residue_detail {

// Returns the least w with w w = -1 modulo m; 0 if there is none.
constexpr int root_of_minus_one(int m) {
  for (int w = 1; w < m; ++w) {
    if ((w * w + 1) % m == 0) return w;
  }
  return 0;
}

// Appends moduli to the first `count` elements of `found` and returns the new count. Candidates are tried
// from 256 down; each one must be coprime to all moduli found before. With `with_roots` a candidate must also
// have a square root of -1, and be odd, since parts are computed from a + w b and a - w b by halving.
constexpr int append_moduli(std::array<int, max_moduli>& found, int count, bool with_roots) {
  for (int candidate = 256; candidate > 2 && count < max_moduli; --candidate) {
    if (with_roots && (candidate % 2 == 0 || root_of_minus_one(candidate) == 0)) continue;
    bool coprime = true;
    for (int t = 0; t < count; ++t) coprime = coprime && std::gcd(candidate, found[t]) == 1;
    if (coprime) found[count++] = candidate;
  }
  return count;
}

struct ComplexModuli {
  std::array<int, max_moduli> all{};
  int with_root = 0;  // the first `with_root` moduli have a square root of -1
  int count = 0;
};

// 241, 233, 229, ..., 29: 22 moduli with a root, 152.1 bits. 256, 253, 251, ..., 19: 27 moduli without one,
// 189.8 bits.
inline constexpr ComplexModuli complex_moduli = [] {
  ComplexModuli moduli;
  constexpr bool with_roots = true;
  moduli.with_root = append_moduli(moduli.all, 0, with_roots);
  moduli.count = append_moduli(moduli.all, moduli.with_root, !with_roots);
  return moduli;
}();

// Constants of each modulus: its square root of -1 (0 if it has none), and 2^(42 l) modulo it for each limb
// l.
struct ComplexConstants {
  std::array<int, max_moduli> roots{};
  std::array<std::array<double, max_limbs>, max_moduli> limb_residues{};
};

inline constexpr ComplexConstants complex_constants = [] {
  ComplexConstants constants;
  for (int t = 0; t < complex_moduli.count; ++t) {
    constants.roots[t] = t < complex_moduli.with_root ? root_of_minus_one(complex_moduli.all[t]) : 0;
    constants.limb_residues[t] = powers_of_limbs(complex_moduli.all[t]);
  }
  return constants;
}();

// Inverse of x modulo `modulus`, 1 ... modulus - 1. x and modulus must be coprime. Returns 1 for modulus 1.
constexpr int inverse_modulo(int x, int modulus) {
  int inverse = 1;
  while (inverse < modulus && x * inverse % modulus != 1) ++inverse;
  return inverse;
}

}  // namespace residue_detail

// Moduli of a complex product: the first `with_root` moduli that have a square root of -1, then the first
// `without` moduli that have none.
struct ComplexBasis {
  int with_root = 0;
  int without = 0;

  friend constexpr bool operator==(const ComplexBasis&, const ComplexBasis&) = default;

  constexpr bool empty() const { return count() == 0; }
  constexpr int count() const { return with_root + without; }
  // Number of slices of an operand, which is also the number of real products. Slices of moduli with a root
  // come first, two per modulus; then three per modulus without one.
  constexpr int slices() const { return 2 * with_root + 3 * without; }
  constexpr bool has_root(int t) const { return t < with_root; }
  constexpr int first_slice(int t) const { return has_root(t) ? 2 * t : 2 * with_root + 3 * (t - with_root); }
  constexpr int modulus(int t) const { return residue_detail::complex_moduli.all[modulus_index(t)]; }
  constexpr int root(int t) const { return residue_detail::complex_constants.roots[modulus_index(t)]; }
  // Weights, 0 ... modulus - 1, for the sums of modulus t's slices. The weighted sum is, modulo modulus t,
  // the real part (part 0) or the imaginary part (part 1) of an element.
  constexpr std::array<std::uint32_t, 3> part_weights(std::int64_t part, int t) const {
    using residue_detail::inverse_modulo;
    const int m = modulus(t);
    const auto mod = [m](int x) { return static_cast<std::uint32_t>((x % m + m) % m); };
    if (!has_root(t) && part == 0) return {1, mod(-1), 0};
    if (!has_root(t)) return {mod(-1), mod(-1), 1};
    const int inverse_of_2 = inverse_modulo(2, m);  // re = (p + q) / 2, im = (p - q) / (2 w)
    const int factor = part == 0 ? inverse_of_2 : inverse_of_2 * inverse_modulo(root(t), m) % m;
    return {mod(factor), mod(part == 0 ? factor : -factor), 0};
  }
  constexpr const std::array<double, max_limbs>& limb_residues(int t) const {
    return residue_detail::complex_constants.limb_residues[modulus_index(t)];
  }

  constexpr int modulus_index(int t) const {
    return has_root(t) ? t : residue_detail::complex_moduli.with_root + t - with_root;
  }
};

// residue_bits(count) of residue.hpp for the moduli of a basis.
constexpr int residue_bits(const ComplexBasis& basis) {
  WideInteger<6> product{{1}};
  for (int t = 0; t < basis.count(); ++t) {
    WideInteger<6> next;
    next.add_multiple(product, static_cast<std::uint64_t>(basis.modulus(t)));
    product = next;
  }
  return product.length() - 3;
}

// Returns the basis with the fewest slices that holds integers of `bits` bits; an empty basis if none does.
constexpr ComplexBasis cheapest_basis(int bits) {
  constexpr auto& known = residue_detail::complex_moduli;
  ComplexBasis best;
  for (int without = 0; without <= known.count - known.with_root; ++without) {
    ComplexBasis basis{0, without};
    while (basis.with_root < known.with_root && residue_bits(basis) < bits) ++basis.with_root;
    if (residue_bits(basis) >= bits && (best.empty() || basis.slices() < best.slices())) best = basis;
  }
  return best;
}

// Moduli of a product's sums: the first `real_count` real moduli, or a complex basis if `basis` is not empty.
struct ResidueSystem {
  int real_count = 0;
  ComplexBasis basis{};

  constexpr int count() const { return basis.empty() ? real_count : basis.count(); }
  constexpr int modulus(int t) const {
    return basis.empty() ? moduli[static_cast<std::size_t>(t)] : basis.modulus(t);
  }
};

}  // namespace kintsugi::core
