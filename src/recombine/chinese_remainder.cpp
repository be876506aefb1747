#include "recombine/chinese_remainder.hpp"

#include "base/vectorised.hpp"

namespace kintsugi::core {

namespace {

using Integer = WideInteger<residue_limbs>;
using Sums = ChineseRemainder::Sums;

constexpr int lanes = ChineseRemainder::lanes;
constexpr int part_bits = ChineseRemainder::part_bits;
constexpr std::uint64_t part_mask = (std::uint64_t{1} << part_bits) - 1;

// Adds modulus t's contribution: the factor (r q_t) mod m_t, -m_t / 2 ... m_t / 2, times M / m_t.
KINTSUGI_VECTORIZED void add_residues(const std::uint8_t* residues, double modulus,
                                      double inverse_of_cofactor, const double* limbs, int parts,
                                      Sums& sums) {
  alignas(64) double factors[lanes];
  const double reciprocal = 1.0 / modulus;
  for (int e = 0; e < lanes; ++e) {
    const double product = residues[e] * inverse_of_cofactor;
    factors[e] = product - nearest_small_integer(product * reciprocal) * modulus;
  }
  for (int e = 0; e < lanes; ++e) sums.quotient[e] += factors[e] * reciprocal;
  for (int l = 0; l < parts; ++l) {
    const double limb = limbs[l];
    for (int e = 0; e < lanes; ++e) sums.limb[l][e] += factors[e] * limb;
  }
}

// Subtracts the multiple of the moduli's product M that brings the sum within M / 4 of zero.
KINTSUGI_VECTORIZED void take_multiples(const double* product, int parts, Sums& sums) {
  for (int e = 0; e < lanes; ++e) sums.quotient[e] = nearest_small_integer(sums.quotient[e]);
  for (int l = 0; l < parts; ++l) {
    const double limb = product[l];
    for (int e = 0; e < lanes; ++e) sums.limb[l][e] -= sums.quotient[e] * limb;
  }
}

template <class Parts>
Parts parts_of(const Integer& integer) {
  Parts parts{};
  for (std::size_t l = 0; l < parts.size(); ++l)
    parts[l] = static_cast<double>(integer.bits_from(part_bits * static_cast<int>(l)) & part_mask);
  return parts;
}

void add_digit(Integer& integer, std::uint64_t digit, int position) {
  const int limb = position / 64;
  const int offset = position % 64;
  integer.limb[limb] |= digit << offset;
  if (offset + part_bits > 64 && limb + 1 < residue_limbs) integer.limb[limb + 1] |= digit >> (64 - offset);
}

// The weighted sum of three residues modulo `modulus`; each product is below 2^16, so the quotient by the
// rounded-up reciprocal is exact.
KINTSUGI_VECTORIZED void weigh(const std::uint8_t* first, const std::uint8_t* second,
                               const std::uint8_t* third, const std::array<std::uint32_t, 3>& weights,
                               int modulus, std::uint8_t* residues) {
  const auto divisor = static_cast<std::uint64_t>(modulus);
  const std::uint64_t reciprocal = ((std::uint64_t{1} << 32) + divisor - 1) / divisor;
  for (int e = 0; e < lanes; ++e) {
    const std::uint64_t sum = first[e] * weights[0] + second[e] * weights[1] + third[e] * weights[2];
    residues[e] = static_cast<std::uint8_t>(sum - (sum * reciprocal >> 32) * divisor);
  }
}

}  // namespace

ChineseRemainder::ChineseRemainder(const ResidueSystem& system) : system_(system) {
  const Integer product = product_without(-1);
  parts_ = (product.length() + part_bits - 1) / part_bits;
  product_ = parts_of<Parts>(product);
  for (int t = 0; t < system_.count(); ++t) {
    part_[t] = parts_of<Parts>(product_without(t));
    inverses_[t] = inverse_of_cofactor(t);
  }
}

void ChineseRemainder::sum_up(const Residues& residues, Sums& sums) const {
  std::fill_n(sums.quotient, lanes, 0.0);
  for (int l = 0; l < parts_; ++l) std::fill_n(sums.limb[l], lanes, 0.0);
  for (int t = 0; t < system_.count(); ++t)
    add_residues(residues[t], system_.modulus(t), inverses_[t], part_[t].data(), parts_, sums);
  take_multiples(product_.data(), parts_, sums);
}

ExactNumber<residue_limbs> ChineseRemainder::number(const Sums& sums, int lane) const {
  std::array<std::uint64_t, max_parts> digits{};
  std::int64_t carry = 0;
  for (int l = 0; l < parts_; ++l) {
    carry += static_cast<std::int64_t>(sums.limb[l][lane]);
    digits[l] = static_cast<std::uint64_t>(carry) & part_mask;
    carry >>= part_bits;
  }
  ExactNumber<residue_limbs> result;
  result.negative = carry < 0;
  std::uint64_t borrow = result.negative ? 1 : 0;  // plus one of the two's complement
  for (int l = 0; l < parts_; ++l) {
    std::uint64_t digit = digits[l];
    if (result.negative) {
      digit = (digit ^ part_mask) + borrow;
      borrow = digit >> part_bits;
      digit &= part_mask;
    }
    add_digit(result.magnitude, digit, part_bits * l);
  }
  return result;
}

Integer ChineseRemainder::product_without(int excluded) const {
  Integer product{{1}};
  for (int t = 0; t < system_.count(); ++t) {
    if (t == excluded) continue;
    Integer next;
    next.add_multiple(product, static_cast<std::uint64_t>(system_.modulus(t)));
    product = next;
  }
  return product;
}

int ChineseRemainder::inverse_of_cofactor(int t) const {
  const int modulus = system_.modulus(t);
  int cofactor = 1;
  for (int s = 0; s < system_.count(); ++s) {
    if (s != t) cofactor = cofactor * system_.modulus(s) % modulus;
  }
  return residue_detail::inverse_modulo(cofactor, modulus);
}

PartWeights::PartWeights(const ComplexBasis& basis) {
  for (std::int64_t part = 0; part < 2; ++part) {
    for (int t = 0; t < basis.count(); ++t) weights_[part][t] = basis.part_weights(part, t);
  }
}

const std::uint8_t* ResidueLanes::group_at(int group, int modulus, std::int64_t i, std::int64_t column,
                                           Lanes& copy) const {
  const auto count = static_cast<int>(std::min<std::int64_t>(lanes, sums_.rows - i));
  const std::int64_t element = i + column * sums_.rows;
  if (sums_.type == SumType::i64) {
    const std::int64_t* source = sums_.group<std::int64_t>(group) + element;
    for (int e = 0; e < count; ++e) {
      const std::int64_t remainder = source[e] % modulus;
      copy[e] = static_cast<std::uint8_t>(remainder < 0 ? remainder + modulus : remainder);
    }
    return copy.data();
  }
  const std::uint8_t* source = sums_.group<std::uint8_t>(group) + element;
  if (count == lanes) return source;
  std::copy_n(source, count, copy.begin());
  return copy.data();
}

const ChineseRemainder::Residues& ResidueLanes::at(std::int64_t i, std::int64_t column) {
  for (int t = 0; t < system_.count(); ++t)
    pointers_[t] = group_at(t, system_.modulus(t), i, column, copies_[t]);
  return pointers_;
}

const ChineseRemainder::Residues& ResidueLanes::of_part(std::int64_t part, std::int64_t i, std::int64_t j) {
  const ComplexBasis& basis = system_.basis;
  std::array<Lanes, 3> sums{};
  std::array<const std::uint8_t*, 3> groups{};
  for (int t = 0; t < basis.count(); ++t) {
    const int modulus = basis.modulus(t);
    const int count = basis.has_root(t) ? 2 : 3;
    for (int s = 0; s < count; ++s) groups[s] = group_at(basis.first_slice(t) + s, modulus, i, j, sums[s]);
    weigh(groups[0], groups[1], groups[count - 1], weights_.of(part, t), modulus, copies_[t].data());
    pointers_[t] = copies_[t].data();
  }
  return pointers_;
}

}  // namespace kintsugi::core
