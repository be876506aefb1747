#include "recombine/weighted.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/weighted_sum.hpp"
#include "recombine/finite_elements.hpp"
#include "recombine/weighted_floats.hpp"

namespace kintsugi::core {

namespace {

int smallest_exponent(const Accumulators& sums, std::span<const int> exponents) {
  return *std::min_element(exponents.begin(), exponents.begin() + sums.groups);
}

// Computes the weighted sum of one element's accumulators.
template <class Accumulator>
class ElementSum {
 public:
  ElementSum(const Accumulators& sums, std::span<const int> exponents)
      : sums_(sums), exponents_(exponents), smallest_(smallest_exponent(sums, exponents)) {}

  double operator()(std::int64_t element) const {
    typename WeightedSumOf<Accumulator>::type sum(smallest_);
    for (int g = 0; g < sums_.groups; ++g) sum.add(exponents_[g], sums_.group<Accumulator>(g)[element]);
    return sum.value();
  }

 private:
  const Accumulators& sums_;
  std::span<const int> exponents_;
  int smallest_;
};

// Computes the weighted sum of one element's 52-bit words.
template <int Limbs>
class ElementWords {
 public:
  ElementWords(const Accumulators& sums, std::span<const int> exponents)
      : sums_(sums), exponents_(exponents), smallest_(smallest_exponent(sums, exponents)) {}

  ExactNumber<Limbs> operator()(std::int64_t element) const {
    WordSum<Limbs> sum(smallest_);
    for (int g = 0; g < sums_.groups; ++g) sum.add(exponents_[g], sums_.group<Integer128>(g)[element]);
    return sum.value();
  }

 private:
  const Accumulators& sums_;
  std::span<const int> exponents_;
  int smallest_;
};

// True if sum * 2^exponent is a normal number of T for every non-zero sum of 128 bits. Then only the
// conversion of the sum to T rounds.
template <class T>
bool stays_normal(int exponent) {
  return exponent >= std::numeric_limits<T>::min_exponent &&
         exponent <= std::numeric_limits<T>::max_exponent - 128;
}

// Rounds to the nearest T. (A cast would call a function of libgcc.) Only the leading 63 bits are rounded. If
// any lower bit is set, the last of the 63 bits is set, so that the result is the same.
template <class T>
T nearest(Integer128 x) {
  __extension__ using Unsigned = unsigned __int128;
  const Unsigned magnitude = x < 0 ? -static_cast<Unsigned>(x) : static_cast<Unsigned>(x);
  const auto high = static_cast<std::uint64_t>(magnitude >> 64);
  const auto low = static_cast<std::uint64_t>(magnitude);
  const int shift = high != 0 ? 65 - std::countl_zero(high) : static_cast<int>(low >> 63);
  const bool is_inexact = (magnitude & ((Unsigned{1} << shift) - 1)) != 0;
  const auto leading =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(magnitude >> shift) | (is_inexact ? 1 : 0));
  const T rounded = static_cast<T>(leading) * static_cast<T>(power_of_two(shift));
  return x < 0 ? -rounded : rounded;
}

// Recombines words for the most frequent case: alpha = 1, beta = 0 and a single group of weight 2^weight. It
// is ten times as fast as recombine_exactly().
template <class T>
void recombine_words(const Accumulators& sums, int weight, std::span<const VectorRange> rows,
                     std::span<const VectorRange> columns, const MatrixView<T>& c, int threads) {
  const ElementWords<2> exactly(sums, {&weight, 1});
  for_each_finite_element(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& element) {
    const std::int64_t position = i + j * c.rows;
    const int unscale = -(rows[i].scale + columns[j].scale);
    if (stays_normal<T>(weight + unscale)) {
      element =
          static_cast<T>(nearest<T>(sums.group<Integer128>(0)[position]) * power_of_two(weight + unscale));
    } else {
      auto exact = exactly(position);
      exact.exponent += unscale;
      element = rounded<T>(exact);
    }
  });
}

// Recombines exact sums. sum(index) returns the weighted sum of an element as an ExactNumber.
template <class T, class Sum>
void recombine_exactly(const Sum& sum, std::span<const VectorRange> rows,
                       std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                       int threads) {
  const auto unscaled = [&](std::int64_t i, std::int64_t v) {
    auto exact = sum(i + v * c.rows);
    exact.exponent -= rows[i].scale + columns[v].scale;
    return exact;
  };
  for_each_finite_element(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& element) {
    const T* old = beta == T(0) ? nullptr : &element;
    if constexpr (is_complex<T>) {
      element = exact_epilogue(unscaled(i, 2 * j), unscaled(i, 2 * j + 1), alpha, beta, old);
    } else {
      element = exact_epilogue(unscaled(i, j), alpha, beta, old);
    }
  });
}

// Recombines sums in double. sum(index) returns the weighted sum of an element as a double.
template <class T, class Sum>
void recombine(const Sum& sum, std::span<const VectorRange> rows, std::span<const VectorRange> columns,
               T alpha, T beta, const MatrixView<T>& c, int threads) {
  const auto exponent = [&](std::int64_t i, std::int64_t v) { return -(rows[i].scale + columns[v].scale); };
  const auto unscaled = [&](std::int64_t i, std::int64_t v) {
    return times_power_of_two(sum(i + v * c.rows), exponent(i, v));
  };
  for_each_finite_element(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& element) {
    const T* old = beta == T(0) ? nullptr : &element;
    if constexpr (is_complex<T>) {
      element = epilogue(Complex<double>(unscaled(i, 2 * j), unscaled(i, 2 * j + 1)), alpha, beta, old);
    } else {
      element = epilogue(sum(i + j * c.rows), exponent(i, j), alpha, beta, old);
    }
  });
}

}  // namespace

template <class T>
void recombine_weighted(const Accumulators& sums, std::span<const int> group_exponents,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads) {
  if constexpr (std::is_same_v<T, float>) {
    if (sums.type == SumType::f32)
      return recombine_weighted_floats(sums, group_exponents, rows, columns, alpha, beta, c, threads);
  }
  const auto in_double = [&](const auto& sum) { recombine(sum, rows, columns, alpha, beta, c, threads); };
  const auto exactly = [&](const auto& sum) {
    recombine_exactly(sum, rows, columns, alpha, beta, c, threads);
  };
  switch (sums.type) {
    case SumType::f32: return in_double(ElementSum<float>(sums, group_exponents));
    case SumType::i64: return in_double(ElementSum<std::int64_t>(sums, group_exponents));
    case SumType::i128: break;     // below
    case SumType::residue: break;  // does not occur: recombine_residues() recombines residues
  }
  if constexpr (!is_complex<T>) {
    if (sums.groups == 1 && alpha == T(1) && beta == T(0))
      return recombine_words(sums, group_exponents[0], rows, columns, c, threads);
  }
  if (sums.groups == 1) return exactly(ElementWords<2>(sums, group_exponents));
  exactly(ElementWords<7>(sums, group_exponents));
}

template void recombine_weighted(const Accumulators&, std::span<const int>, std::span<const VectorRange>,
                                 std::span<const VectorRange>, float, float, const MatrixView<float>&, int);
template void recombine_weighted(const Accumulators&, std::span<const int>, std::span<const VectorRange>,
                                 std::span<const VectorRange>, double, double, const MatrixView<double>&,
                                 int);

template void recombine_weighted(const Accumulators&, std::span<const int>, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<float>, std::complex<float>,
                                 const MatrixView<std::complex<float>>&, int);
template void recombine_weighted(const Accumulators&, std::span<const int>, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<double>, std::complex<double>,
                                 const MatrixView<std::complex<double>>&, int);

}  // namespace kintsugi::core
