#include "recombine/weighted.hpp"

#include <algorithm>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "recombine/finite_entries.hpp"

namespace kintsugi::core {

namespace {

// Weighted sum of one entry's floating accumulators.
class FloatingSum {
 public:
  FloatingSum(const Accumulators& sums, std::span<const int> exponents)
      : sums_(sums), exponents_(exponents) {}

  double operator()(std::int64_t element) const {
    double sum = 0;
    for (int g = 0; g < sums_.groups; ++g) {
      sum += power_of_two(exponents_[g]) * static_cast<double>(sums_.group<float>(g)[element]);
    }
    return sum;
  }

 private:
  const Accumulators& sums_;
  std::span<const int> exponents_;
};

// The same of integer ones: one sum of multiples of the smallest weight. 256 groups of sums below 2^60 (2^46 products of
// int8) and weights that are at most 2^58 apart keep it below 2^126.
class IntegerSum {
 public:
  IntegerSum(const Accumulators& sums, std::span<const int> exponents)
      : sums_(sums), exponents_(exponents),
        smallest_(*std::min_element(exponents.begin(), exponents.begin() + sums.groups)) {}

  double operator()(std::int64_t element) const {
    WideInteger sum = 0;
    for (int g = 0; g < sums_.groups; ++g) {
      const WideInteger part = sums_.group<std::int64_t>(g)[element];
      sum += part * (WideInteger{1} << (exponents_[g] - smallest_));
    }
    return static_cast<double>(sum) * power_of_two(smallest_);
  }

 private:
  __extension__ using WideInteger = __int128;

  const Accumulators& sums_;
  std::span<const int> exponents_;
  int smallest_;
};

template <class T, class Sum>
void recombine(const Sum& sum, std::span<const VectorRange> rows, std::span<const VectorRange> columns,
               T alpha, T beta, const MatrixView<T>& c, int threads) {
  const auto exponent = [&](std::int64_t i, std::int64_t v) { return -(rows[i].scale + columns[v].scale); };
  const auto part = [&](std::int64_t i, std::int64_t v) {
    return times_power_of_two(sum(i + v * c.rows), exponent(i, v));
  };
  for_each_finite_entry(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& entry) {
    const T* old = beta == T(0) ? nullptr : &entry;
    if constexpr (is_complex<T>) {
      entry = epilogue(std::complex<double>(part(i, 2 * j), part(i, 2 * j + 1)), alpha, beta, old);
    } else {
      entry = epilogue(sum(i + j * c.rows), exponent(i, j), alpha, beta, old);
    }
  });
}

}  // namespace

template <class T>
void recombine_weighted(const Accumulators& sums, std::span<const int> group_exponents,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads) {
  if (sums.type == SumType::f32)
    return recombine(FloatingSum(sums, group_exponents), rows, columns, alpha, beta, c, threads);
  recombine(IntegerSum(sums, group_exponents), rows, columns, alpha, beta, c, threads);
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
