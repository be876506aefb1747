// Elements of C = alpha A B + beta C0, computed with ExactSum.
#include <omp.h>

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "arith/double_double.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::measure {
namespace {

// Returns the number of threads: several only if the work is large enough.
int thread_count(int threads, std::int64_t products) {
  if (threads > 0) return threads;
  return products > (1 << 16) ? omp_get_max_threads() : 1;
}

using core::DoubleDouble;
using core::leading_part;

// Returns the doubles whose sum is the number.
std::array<double, 1> words(double x) { return {x}; }
std::array<double, 2> words(const DoubleDouble& x) {
  const DoubleDouble number = core::normalized(x);
  return {number.hi, number.lo};
}

template <class T>
void add_dot(ExactSum& sum, const T* a, const T* b, std::int64_t count) {
  if constexpr (core::is_double_double<T>) {
    for (std::int64_t l = 0; l < count; ++l) {
      if (!core::is_finite(leading_part(a[l])) || !core::is_finite(leading_part(b[l]))) {
        sum.add_product(leading_part(a[l]), leading_part(b[l]));
        continue;
      }
      for (const double x : words(a[l])) {
        for (const double y : words(b[l])) sum.add_product(x, y);
      }
    }
  } else {
    sum.add_products(a, b, count);
  }
}

// Multiplies the sum by x; add_term() adds x y. Numbers that are not finite count by their leading parts.
template <class Scalar>
void multiply(ExactSum& sum, const Scalar& x) {
  const ExactSum original = sum;
  const auto factors = words(x);
  sum.multiply(factors[0]);
  for (std::size_t w = 1; w < factors.size(); ++w) {
    if (factors[w] == 0 || !sum.is_finite()) continue;
    ExactSum part = original;
    part.multiply(factors[w]);
    sum.add(part);
  }
}

template <class Scalar>
void add_term(ExactSum& sum, const Scalar& x, const Scalar& y) {
  if (!core::is_finite(leading_part(x)) || !core::is_finite(leading_part(y)))
    return sum.add_product(leading_part(x), leading_part(y));
  for (const double first : words(x)) {
    for (const double second : words(y)) sum.add_product(first, second);
  }
}

// Returns sum |a||b|, products and additions rounded; in eight lanes, so that the compiler can vectorize.
template <class T>
double absolute_dot(const T* a, const T* b, std::int64_t count) {
  constexpr int lanes = 8;
  double sum[lanes] = {};
  std::int64_t l = 0;
  for (; l + lanes <= count; l += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      sum[lane] += std::fabs(leading_part(a[l + lane]) * leading_part(b[l + lane]));
    }
  }
  for (; l < count; ++l) sum[0] += std::fabs(leading_part(a[l]) * leading_part(b[l]));
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

template <class T>
double exact_absolute(const T* a, const T* b, std::int64_t count, double alpha, double beta, double c0) {
  ExactSum sum;
  for (std::int64_t l = 0; l < count; ++l)
    sum.add_product(std::fabs(leading_part(a[l])), std::fabs(leading_part(b[l])));
  if (alpha != 1) sum.multiply(std::fabs(alpha));
  sum.add_product(std::fabs(beta), std::fabs(c0));
  if (sum.is_zero()) return 0;
  return std::nextafter(sum.to_double(), std::numeric_limits<double>::infinity());
}

// Returns ExactElement::absolute. The fast sum has an error of at most (k / 8 + 8) 2^-53 of itself if nothing
// underflows or overflows, so it is raised by (k + 8) 2^-53. Double-double numbers exceed their leading parts
// by at most 2^-53 of them, which a third of the eight covers.
template <class T>
double absolute_bound(const T* a, const T* b, std::int64_t count, double alpha, double beta, double c0) {
  // Above this limit underflowing products, which lose at most 2^-1075 each, lose less than 2^-53 of the sum.
  const double safe = std::ldexp(static_cast<double>(count + 4), -1020);
  const double dot = absolute_dot(a, b, count);
  const double sum = std::fabs(alpha) * dot + std::fabs(beta * c0);
  const double raised = sum * (1 + std::ldexp(static_cast<double>(count + 8), -53));
  if (dot >= safe && sum >= safe && std::isfinite(raised)) return raised;
  return exact_absolute(a, b, count, alpha, beta, c0);
}

}  // namespace

template <class T>
ElementReference<T>::ElementReference(const T* row, const T* column, std::int64_t count, ScalarOf<T> alpha,
                                      ScalarOf<T> beta, ScalarOf<T> c0) {
  if (alpha == 0) count = 0;
  if (beta == 0) c0 = 0;
  add_dot(sum_, row, column, count);
  if (count > 0 && alpha != 1) multiply(sum_, alpha);
  if (beta != 0) add_term(sum_, beta, c0);
  absolute_ = absolute_bound(row, column, count, leading_part(alpha), leading_part(beta), leading_part(c0));
}

template <class T>
ElementReference<T>& ElementReference<T>::operator+=(const ElementReference& other) {
  sum_.add(other.sum_);
  absolute_ += other.absolute_;
  return *this;
}

template <class T>
ExactSum ElementReference<T>::error_of(T computed) const {
  ExactSum error = sum_;
  error.negate();
  for (const double word : words(computed)) error.add(word);
  return error;
}

template <class T>
T ElementReference<T>::rounded(core::RoundingMode rounding) const {
  if constexpr (core::is_double_double<T>) {
    return core::rounded_to_pair(sum_);
  } else if constexpr (std::is_same_v<T, float>) {
    return sum_.to_float(rounding);
  } else {
    return sum_.to_double(rounding);
  }
}

template <class T>
ElementReference<T> element_reference(const Product<T>& product, std::int64_t i, std::int64_t j, const T* row,
                                      const T* column, const T* crossed) {
  const std::int64_t k = product.multiplies() ? product.a.columns : 0;
  const auto old = [&](const ScalarOf<T>& factor, std::int64_t column_of_c) {
    return factor == 0 ? ScalarOf<T>(0) : static_cast<ScalarOf<T>>(product.c0(i, column_of_c));
  };
  ElementReference<T> reference(row, column, k, product.alpha, product.beta, old(product.beta, j));
  if (product.crosses()) {
    const double sign = j % 2 == 0 ? -1 : 1;
    const double beta = sign * product.beta_im;
    reference += ElementReference<T>(row, crossed, k, sign * product.alpha_im, beta, old(beta, j ^ 1));
  }
  return reference;
}

namespace {

template <class T>
ElementReference<T> gather_element(const Product<T>& product, std::int64_t i, std::int64_t j) {
  const std::int64_t k = product.multiplies() ? product.a.columns : 0;
  std::vector<T> row(static_cast<std::size_t>(k));
  std::vector<T> column(static_cast<std::size_t>(k));
  std::vector<T> crossed(static_cast<std::size_t>(product.crosses() ? k : 0));
  for (std::int64_t l = 0; l < k; ++l) {
    row[l] = product.a(i, l);
    column[l] = product.b(l, j);
    if (product.crosses()) crossed[l] = product.b(l, j ^ 1);
  }
  return element_reference(product, i, j, row.data(), column.data(), crossed.data());
}

}  // namespace

template <class T>
ExactElement exact_element(const Product<T>& product, std::int64_t i, std::int64_t j) {
  return gather_element(product, i, j).element();
}

template <class T>
double exact_error(const Product<T>& product, std::int64_t i, std::int64_t j, T computed) {
  return gather_element(product, i, j).error_of(computed).to_double();
}

template <class T>
void exact_product(const Product<T>& product, core::MatrixView<T> c, int threads) {
  const std::int64_t k = product.multiplies() ? product.a.columns : 0;
  std::vector<T> rows(static_cast<std::size_t>(c.rows * k));
  std::vector<T> columns(static_cast<std::size_t>(c.columns * k));
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t i = 0; i < c.rows; ++i) rows[i * k + l] = product.a(i, l);
    for (std::int64_t j = 0; j < c.columns; ++j) columns[j * k + l] = product.b(l, j);
  }
  const int team = thread_count(threads, c.rows * c.columns * (k + 1));
#pragma omp parallel for collapse(2) schedule(dynamic, 64) num_threads(team)
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const T* crossed = product.crosses() ? columns.data() + (j ^ 1) * k : nullptr;
      c(i, j) =
          element_reference(product, i, j, rows.data() + i * k, columns.data() + j * k, crossed).rounded();
    }
  }
}

template class ElementReference<float>;
template class ElementReference<double>;
template class ElementReference<DoubleDouble>;
template ElementReference<float> element_reference(const Product<float>&, std::int64_t, std::int64_t,
                                                   const float*, const float*, const float*);
template ElementReference<double> element_reference(const Product<double>&, std::int64_t, std::int64_t,
                                                    const double*, const double*, const double*);
template ElementReference<DoubleDouble> element_reference(const Product<DoubleDouble>&, std::int64_t,
                                                          std::int64_t, const DoubleDouble*,
                                                          const DoubleDouble*, const DoubleDouble*);
template ExactElement exact_element(const Product<float>&, std::int64_t, std::int64_t);
template ExactElement exact_element(const Product<double>&, std::int64_t, std::int64_t);
template ExactElement exact_element(const Product<DoubleDouble>&, std::int64_t, std::int64_t);
template double exact_error(const Product<DoubleDouble>&, std::int64_t, std::int64_t, DoubleDouble);
template void exact_product(const Product<DoubleDouble>&, core::MatrixView<DoubleDouble>, int);
template double exact_error(const Product<float>&, std::int64_t, std::int64_t, float);
template double exact_error(const Product<double>&, std::int64_t, std::int64_t, double);
template void exact_product(const Product<float>&, core::MatrixView<float>, int);
template void exact_product(const Product<double>&, core::MatrixView<double>, int);

}  // namespace kintsugi::measure
