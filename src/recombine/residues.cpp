#include "recombine/recombine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "arith/double_double.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/range.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/residue.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/finite_elements.hpp"

namespace kintsugi::core {

namespace {

// The Chinese remainder theorem for many elements at once.

// Number of 64-bit limbs for the product of all moduli, which has 342 bits.
constexpr int residue_limbs = 6;

// Recombination by a set of moduli m_t. M is the product of the moduli, and q_t is the inverse of M / m_t
// modulo m_t. The integer with the residues r_t is
//   N = sum over t of ((r_t q_t) mod m_t) (M / m_t)   mod M.
class ChineseRemainder {
 public:
  // Elements of one column that are recombined together.
  static constexpr int lanes = 64;

  // Bits of the digits in which sums are computed. Sums of 49 products of a digit and a factor of at most 128
  // are exact in double.
  static constexpr int digit_bits = 40;
  static constexpr int max_digits = 9;

  struct Sums {
    alignas(64) double quotient[lanes];           // the sum divided by M, then rounded to an integer
    alignas(64) double digit[max_digits][lanes];  // signed digits of the sum, without carries
  };

  using Residues = std::array<const std::uint8_t*, max_moduli>;

  explicit ChineseRemainder(const ResidueSystem& system);

  // Computes the sums of `lanes` elements. residues[t] points to their residues modulo m_t.
  void sum_up(const Residues& residues, Sums& sums) const;

  // Returns the integer N, |N| < M / 4, of element `lane` from its sums.
  ExactNumber<residue_limbs> number(const Sums& sums, int lane) const;

 private:
  using Digits = std::array<double, max_digits>;

  static constexpr int no_modulus = -1;

  // Returns the product of all moduli except modulus `excluded`; of all moduli for no_modulus.
  WideInteger<residue_limbs> product_without(int excluded) const;
  int inverse_of_cofactor(int t) const;

  ResidueSystem system_;
  int digits_ = 0;  // number of digits of the product of all moduli
  Digits product_{};
  std::array<Digits, max_moduli> cofactors_{};  // M / m_t
  std::array<int, max_moduli> inverses_{};      // q_t
};

// The weights of ComplexBasis::part_weights(), computed once. A part's residue (part 0: real, part 1:
// imaginary) is the weighted sum of the two or three groups of a modulus.
class PartWeights {
 public:
  explicit PartWeights(const ComplexBasis& basis);

  const std::array<std::uint32_t, 3>& of(std::int64_t part, int t) const { return weights_[part][t]; }

 private:
  std::array<std::array<std::array<std::uint32_t, 3>, max_moduli>, 2> weights_{};
};

// Gathers the residues of `lanes` consecutive rows for ChineseRemainder::sum_up().
class ResidueLanes {
 public:
  ResidueLanes(const Accumulators& sums, const ResidueSystem& system, const PartWeights& weights)
      : sums_(sums), system_(system), weights_(weights) {}

  // Returns the residues of rows i, i + 1, ... of a column of the sums. Lanes beyond the last row are
  // unspecified.
  const ChineseRemainder::Residues& at(std::int64_t i, std::int64_t column);

  // Returns the residues of one part (0: real, 1: imaginary) of elements (i, j), (i + 1, j), ..., for a
  // complex basis.
  const ChineseRemainder::Residues& of_part(std::int64_t part, std::int64_t i, std::int64_t j);

 private:
  using Lanes = std::array<std::uint8_t, ChineseRemainder::lanes>;

  // Returns the residues of a group's sums. If the sums are residues already and no lane is beyond the last
  // row, this is a pointer into the sums. Otherwise fills `copy` and returns a pointer to it.
  const std::uint8_t* group_at(int group, int modulus, std::int64_t i, std::int64_t column,
                               Lanes& copy) const;

  const Accumulators& sums_;
  const ResidueSystem& system_;
  const PartWeights& weights_;
  ChineseRemainder::Residues pointers_{};
  std::array<Lanes, max_moduli> copies_{};
};

// The integers of an element's parts. Their exponents undo the scales.
template <std::int64_t Parts>
using ElementIntegers = std::array<ExactNumber<residue_limbs>, static_cast<std::size_t>(Parts)>;

// Calls visit(i, j, integers) for every element whose row of A and column of B are finite. For each column of
// elements, `columns` has `Parts` ranges. The sums have `Parts` columns, or one if they are sums of complex
// residues.
template <std::int64_t Parts, class Visit>
void for_each_integer(const Accumulators& sums, const ResidueSystem& system,
                      std::span<const VectorRange> rows, std::span<const VectorRange> columns, int threads,
                      const Visit& visit) {
  const ChineseRemainder remainder(system);
  const PartWeights weights(system.basis);
  const bool has_complex_sums = !system.basis.empty();
  const std::int64_t element_columns = has_complex_sums ? sums.columns : sums.columns / Parts;
  const auto visit_lanes = [&](ResidueLanes& residues, std::int64_t first, std::int64_t j) {
    std::array<ChineseRemainder::Sums, static_cast<std::size_t>(Parts)> integers;
    for (std::int64_t part = 0; part < Parts; ++part)
      remainder.sum_up(
          has_complex_sums ? residues.of_part(part, first, j) : residues.at(first, Parts * j + part),
          integers[part]);
    const std::int64_t end = std::min(sums.rows, first + ChineseRemainder::lanes);
    for (std::int64_t i = first; i < end; ++i) {
      if (!rows[i].finite()) continue;
      ElementIntegers<Parts> numbers;
      for (std::int64_t part = 0; part < Parts; ++part) {
        numbers[part] = remainder.number(integers[part], static_cast<int>(i - first));
        numbers[part].exponent = -(rows[i].scale + columns[Parts * j + part].scale);
      }
      visit(i, j, numbers);
    }
  };
  const std::int64_t tiles = (element_columns + columns_of_tile - 1) / columns_of_tile;
#pragma omp parallel for num_threads(workers_for(tiles, threads)) schedule(static)
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const FloatingEnvironment environment;
    ResidueLanes residues(sums, system, weights);
    const std::int64_t end = std::min((tile + 1) * columns_of_tile, element_columns);
    for (std::int64_t first = 0; first < sums.rows; first += ChineseRemainder::lanes) {
      for (std::int64_t j = tile * columns_of_tile; j < end; ++j) {
        if (columns[Parts * j].finite()) visit_lanes(residues, first, j);
      }
    }
  }
}

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

template <class T>
using Integers = ElementNumbers<T, residue_limbs>;

}  // namespace

template <class T>
void recombine_residues(const Accumulators& sums, const ResidueSystem& system,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads) {
  for_each_integer<parts_of<T>>(
      sums, system, rows, columns, threads, [&](std::int64_t i, std::int64_t j, const Integers<T>& exact) {
        T& element = c(i, j);
        const T* old = beta == T(0) ? nullptr : &element;
        element = rounded_element<T, residue_limbs>(exact, alpha, beta, old, RoundingMode::nearest);
      });
}

template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, const ResidueSystem& system,
                                        std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const ElementCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* states,
                                        bool writes, int threads) {
  std::atomic<std::int64_t> still_open = 0;
  const auto visit = [&](std::int64_t i, std::int64_t j, const Integers<T>& exact) {
    std::uint8_t& state = states[i + j * sums.rows];
    if (state == ElementCheck::closed) return;
    // The deviation of an element that is proved already stays 0. round_if_proved() then accepts every
    // result.
    ElementDeviations<T> deviations{};
    if (state == ElementCheck::open) {
      for (std::int64_t part = 0; part < parts_of<T>; ++part) {
        deviations[part] = largest_deviation(check.rows[i], check.columns[parts_of<T> * j + part],
                                             check.largest_a, check.largest_b);
      }
    }
    T& element = c(i, j);
    const T* old = beta == T(0) ? nullptr : &element;
    T result;
    if (!round_if_proved<T, residue_limbs>(check.demand, exact, deviations, alpha, beta, old, result)) {
      still_open.fetch_add(1, std::memory_order_relaxed);
    } else if (writes) {
      element = result;
      state = ElementCheck::closed;
    }
  };
  for_each_integer<parts_of<T>>(sums, system, rows, columns, threads, visit);
  return still_open;
}

#define INSTANTIATE(T)                                                                                       \
  template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,  \
                                   std::span<const VectorRange>, T, T, const MatrixView<T>&, int);           \
  template std::int64_t recombine_checked_residues(                                                          \
      const Accumulators&, const ResidueSystem&, std::span<const VectorRange>, std::span<const VectorRange>, \
      const ElementCheck&, T, T, const MatrixView<T>&, std::uint8_t*, bool, int);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* states, int threads) {
  const std::int64_t columns = sums.columns / parts;
  const auto is_proved = [&](std::int64_t i, std::int64_t v) {
    const double deviation =
        largest_deviation(check.rows[i], check.columns[v], check.largest_a, check.largest_b);
    const double magnitudes = static_cast<double>(sums.group<std::int64_t>(0)[i + v * sums.rows]);
    return keeps(check.demand, magnitudes * unit, deviation);
  };
#pragma omp parallel for num_threads(workers_for(columns, threads)) schedule(static)
  for (std::int64_t j = 0; j < columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < sums.rows; ++i) {
      bool proved = true;
      for (int part = 0; part < parts; ++part) proved = proved && is_proved(i, parts * j + part);
      if (proved) states[i + j * sums.rows] = ElementCheck::proved;
    }
  }
}

}  // namespace kintsugi::core
