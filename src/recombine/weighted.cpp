#include "recombine/recombine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/weighted_sum.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "formats/format.hpp"
#include "recombine/finite_elements.hpp"

namespace kintsugi::core {

namespace {

// Size of the blocks that are recombined at once. 16 columns of one row are a cache line of a row-major C,
// and 256 such lines fit the L1 cache.
constexpr std::int64_t max_rows = 256;
constexpr std::int64_t max_columns = 16;

KINTSUGI_VECTORIZED void add_group(const float* group, double weight, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<double>(group[i]);
}

// Computes epilogue() for `count` rows of a column: element = alpha * sum * 2^-(row_scale + column_scale) +
// beta * element. If `reads_c` is false, the second summand is left out. The power of two is made from its
// exponent field.
KINTSUGI_VECTORIZED void finish(const double* sums, const std::int32_t* row_scales, std::int32_t column_scale,
                                double alpha, double beta, bool reads_c, std::int64_t count,
                                float* elements) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto field = static_cast<std::uint64_t>(std::int64_t{1023 - column_scale - row_scales[i]}) << 52;
    const double product = alpha * (sums[i] * std::bit_cast<double>(field));
    const double old = reads_c ? beta * static_cast<double>(elements[i]) : 0;
    elements[i] = static_cast<float>(reads_c ? product + old : product);
  }
}

class Recombination {
 public:
  Recombination(const Accumulators& sums, std::span<const int> exponents, std::span<const VectorRange> rows,
                std::span<const VectorRange> columns, float alpha, float beta, const MatrixView<float>& c)
      : sums_(sums), exponents_(exponents), rows_(rows), columns_(columns), alpha_(alpha), beta_(beta),
        c_(c) {}

  // Writes columns first ... last - 1.
  void run(std::int64_t first, std::int64_t last) const {
    RowScales scales;
    for (std::int64_t row = 0; row < c_.rows; row += max_rows) {
      const std::int64_t count = std::min(max_rows, c_.rows - row);
      const auto ranges = rows_.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(count));
      std::transform(ranges.begin(), ranges.end(), scales.begin(),
                     [](const VectorRange& range) { return range.scale; });
      const bool all_finite =
          std::all_of(ranges.begin(), ranges.end(), [](const VectorRange& range) { return range.finite(); });
      for (std::int64_t j = first; j < last; ++j) {
        const VectorRange& column = columns_[static_cast<std::size_t>(j)];
        if (!column.finite()) continue;
        const Elements elements = results_of_column(row, j, count, scales, column.scale);
        float* target = &c_(row, j);
        for (std::int64_t i = 0; i < count; ++i) {
          if (all_finite || ranges[static_cast<std::size_t>(i)].finite())
            target[i * c_.row_stride] = elements[static_cast<std::size_t>(i)];
        }
      }
    }
  }

 private:
  using RowScales = std::array<std::int32_t, max_rows>;

  using Elements = std::array<float, max_rows>;

  // Returns the results of `count` rows of a column.
  Elements results_of_column(std::int64_t row, std::int64_t j, std::int64_t count, const RowScales& scales,
                             std::int32_t scale) const {
    alignas(64) std::array<double, max_rows> sums;
    alignas(64) Elements elements;  // first the old elements of C, then the results
    std::fill_n(sums.begin(), count, 0.0);
    for (int g = 0; g < sums_.groups; ++g)
      add_group(sums_.group<float>(g) + row + j * sums_.rows,
                power_of_two(exponents_[static_cast<std::size_t>(g)]), count, sums.data());
    const bool reads_c = beta_ != 0;
    if (reads_c) {
      for (std::int64_t i = 0; i < count; ++i) elements[static_cast<std::size_t>(i)] = c_(row + i, j);
    }
    finish(sums.data(), scales.data(), scale, static_cast<double>(alpha_), static_cast<double>(beta_),
           reads_c, count, elements.data());
    return elements;
  }

  const Accumulators& sums_;
  std::span<const int> exponents_;
  std::span<const VectorRange> rows_;
  std::span<const VectorRange> columns_;
  float alpha_;
  float beta_;
  const MatrixView<float>& c_;
};

// Vectorised form of recombine_weighted() for real fp32 results from fp32 sums. Gives the same bits.
void recombine_weighted_floats(const Accumulators& sums, std::span<const int> group_exponents,
                               std::span<const VectorRange> rows, std::span<const VectorRange> columns,
                               float alpha, float beta, const MatrixView<float>& c, int threads) {
  const Recombination recombination(sums, group_exponents, rows, columns, alpha, beta, c);
  const std::int64_t blocks = divide_up(c.columns, max_columns);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * max_columns;
    recombination.run(first, std::min(first + max_columns, c.columns));
  }
}

// Computes the weighted sum of one element's accumulators. Sum: a class of arith/weighted_sum.hpp.
template <class Sum, class Accumulator>
class ElementSum {
 public:
  ElementSum(const Accumulators& sums, std::span<const int> exponents)
      : sums_(sums), exponents_(exponents),
        smallest_(*std::min_element(exponents.begin(), exponents.begin() + sums.groups)) {}

  auto operator()(std::int64_t element) const {
    Sum sum(smallest_);
    for (int g = 0; g < sums_.groups; ++g) sum.add(exponents_[g], sums_.group<Accumulator>(g)[element]);
    return sum.value();
  }

 private:
  const Accumulators& sums_;
  std::span<const int> exponents_;
  int smallest_;
};

template <int Limbs>
using ElementWords = ElementSum<WordSum<Limbs>, Integer128>;

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
    case SumType::f32: return in_double(ElementSum<FloatingSum, float>(sums, group_exponents));
    case SumType::i64: return in_double(ElementSum<IntegerSum, std::int64_t>(sums, group_exponents));
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

template <class T>
void recombine_by_maxima(const Accumulators& sums, std::span<const std::pair<int, int>> slices,
                         const SliceWeights& a, const SliceWeights& b, std::span<const VectorRange> rows,
                         std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                         int threads) {
  const auto sum_of = [&](std::int64_t element) {
    const std::int64_t i = element % sums.rows;
    const std::int64_t j = element / sums.rows;
    double sum = 0;
    for (int g = 0; g < sums.groups; ++g) {
      const auto [s, t] = slices[g];
      sum += a(i, s) * b(j, t) * static_cast<double>(sums.group<std::int64_t>(g)[element]);
    }
    return sum;
  };
  recombine(sum_of, rows, columns, alpha, beta, c, threads);
}

#define INSTANTIATE(T)                                                                                      \
  template void recombine_weighted(const Accumulators&, std::span<const int>, std::span<const VectorRange>, \
                                   std::span<const VectorRange>, T, T, const MatrixView<T>&, int);          \
  template void recombine_by_maxima(const Accumulators&, std::span<const std::pair<int, int>>,              \
                                    const SliceWeights&, const SliceWeights&, std::span<const VectorRange>, \
                                    std::span<const VectorRange>, T, T, const MatrixView<T>&, int);
KINTSUGI_FOR_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
