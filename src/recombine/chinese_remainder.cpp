#include "recombine/chinese_remainder.hpp"

#include "base/vectorised.hpp"

namespace kintsugi::core {

namespace {

using Integer = WideInteger<residue_limbs>;
using Sums = ChineseRemainder::Sums;

constexpr int lanes = ChineseRemainder::lanes;
constexpr int digit_bits = ChineseRemainder::digit_bits;
constexpr std::uint64_t digit_mask = (std::uint64_t{1} << digit_bits) - 1;

// Adds the summand of modulus m_t to the sums: M / m_t times the residue of r_t q_t between -m_t / 2 and m_t
// / 2.
KINTSUGI_VECTORIZED void add_residues(const std::uint8_t* residues, double modulus,
                                      double inverse_of_cofactor, const double* cofactor, int digits,
                                      Sums& sums) {
  alignas(64) double factors[lanes];
  const double reciprocal = 1.0 / modulus;
  for (int e = 0; e < lanes; ++e) {
    const double product = residues[e] * inverse_of_cofactor;
    factors[e] = product - nearest_small_integer(product * reciprocal) * modulus;
  }
  for (int e = 0; e < lanes; ++e) sums.quotient[e] += factors[e] * reciprocal;
  for (int l = 0; l < digits; ++l) {
    const double digit = cofactor[l];
    for (int e = 0; e < lanes; ++e) sums.digit[l][e] += factors[e] * digit;
  }
}

// Subtracts that multiple of M after which the sum's magnitude is at most M / 4.
KINTSUGI_VECTORIZED void subtract_multiples(const double* product, int digits, Sums& sums) {
  for (int e = 0; e < lanes; ++e) sums.quotient[e] = nearest_small_integer(sums.quotient[e]);
  for (int l = 0; l < digits; ++l) {
    const double digit = product[l];
    for (int e = 0; e < lanes; ++e) sums.digit[l][e] -= sums.quotient[e] * digit;
  }
}

template <class Digits>
Digits digits_of(const Integer& integer) {
  Digits digits{};
  for (std::size_t l = 0; l < digits.size(); ++l)
    digits[l] = static_cast<double>(integer.bits_from(digit_bits * static_cast<int>(l)) & digit_mask);
  return digits;
}

// Writes a digit into the integer, from bit `position` on. These bits must be zero before.
void set_digit(Integer& integer, std::uint64_t digit, int position) {
  const int limb = position / 64;
  const int offset = position % 64;
  integer.limb[limb] |= digit << offset;
  if (offset + digit_bits > 64 && limb + 1 < residue_limbs) integer.limb[limb + 1] |= digit >> (64 - offset);
}

// Sets the residues of weighted sums of three numbers below `modulus`. The quotient is computed by a
// multiplication by the reciprocal, rounded up. It is exact, since each of the three products is below 2^16.
KINTSUGI_VECTORIZED void set_weighted_residues(const std::uint8_t* first, const std::uint8_t* second,
                                               const std::uint8_t* third,
                                               const std::array<std::uint32_t, 3>& weights, int modulus,
                                               std::uint8_t* residues) {
  const auto divisor = static_cast<std::uint64_t>(modulus);
  const std::uint64_t reciprocal = ((std::uint64_t{1} << 32) + divisor - 1) / divisor;
  for (int e = 0; e < lanes; ++e) {
    const std::uint64_t sum = first[e] * weights[0] + second[e] * weights[1] + third[e] * weights[2];
    residues[e] = static_cast<std::uint8_t>(sum - (sum * reciprocal >> 32) * divisor);
  }
}

}  // namespace

ChineseRemainder::ChineseRemainder(const ResidueSystem& system) : system_(system) {
  const Integer product = product_without(no_modulus);
  digits_ = (product.length() + digit_bits - 1) / digit_bits;
  product_ = digits_of<Digits>(product);
  for (int t = 0; t < system_.count(); ++t) {
    cofactors_[t] = digits_of<Digits>(product_without(t));
    inverses_[t] = inverse_of_cofactor(t);
  }
}

void ChineseRemainder::sum_up(const Residues& residues, Sums& sums) const {
  std::fill_n(sums.quotient, lanes, 0.0);
  for (int l = 0; l < digits_; ++l) std::fill_n(sums.digit[l], lanes, 0.0);
  for (int t = 0; t < system_.count(); ++t)
    add_residues(residues[t], system_.modulus(t), inverses_[t], cofactors_[t].data(), digits_, sums);
  subtract_multiples(product_.data(), digits_, sums);
}

ExactNumber<residue_limbs> ChineseRemainder::number(const Sums& sums, int lane) const {
  std::array<std::uint64_t, max_digits> digits{};
  std::int64_t carry = 0;
  for (int l = 0; l < digits_; ++l) {
    carry += static_cast<std::int64_t>(sums.digit[l][lane]);
    digits[l] = static_cast<std::uint64_t>(carry) & digit_mask;
    carry >>= digit_bits;
  }
  ExactNumber<residue_limbs> result;
  result.negative = carry < 0;
  std::uint64_t increment = 1;  // the magnitude of a negative number is its inverted bits plus 1
  for (int l = 0; l < digits_; ++l) {
    std::uint64_t digit = digits[l];
    if (result.negative) {
      digit = (digit ^ digit_mask) + increment;
      increment = digit >> digit_bits;
      digit &= digit_mask;
    }
    set_digit(result.magnitude, digit, digit_bits * l);
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
    // If there are only two groups, the second one is also passed as the third, which has weight 0.
    const int count = basis.has_root(t) ? 2 : 3;
    for (int s = 0; s < count; ++s) groups[s] = group_at(basis.first_slice(t) + s, modulus, i, j, sums[s]);
    set_weighted_residues(groups[0], groups[1], groups[count - 1], weights_.of(part, t), modulus,
                          copies_[t].data());
    pointers_[t] = copies_[t].data();
  }
  return pointers_;
}

}  // namespace kintsugi::core
