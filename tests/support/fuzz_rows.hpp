// Checks every element of a large C by sums along its rows: compares sum_j x_j C_ij with alpha a_i (B x) +
// beta (C0 x)_i for random signs x. This is R. Freivalds' test of a product (1977), extended by the rounding
// errors that are allowed. It costs as much as reading the matrices, and finds an element whose error exceeds
// the error that its whole row is allowed.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tools/measure/generators/random.hpp"

namespace kintsugi::test::fuzz {

// Rows of op(A) and of C before the call, and columns of op(B), each contiguous. A complex product is given
// as a real one with twice the inner length and columns; imaginary parts of scalars combine columns 2j and 2j
// + 1.
template <class Part>
struct RealProduct {
  std::int64_t m, n, k;
  const Part *a, *b, *c0;
  double alpha, alpha_im, beta, beta_im;
};

// |error| of an element may be relative * (|alpha||A||B| + |beta C0|) + absolute.
struct ElementBound {
  double relative = 0;
  double absolute = 0;
};

template <class Part>
class RowSums {
 public:
  RowSums(const RealProduct<Part>& product, std::uint64_t seed) : p_(product) {
    for (std::int64_t j = 0; j < p_.n; ++j) {
      const bool is_finite = !reads_b() || all_finite(p_.b + j * p_.k);
      const bool flip = (measure::mix_bits(seed + static_cast<std::uint64_t>(j)) & 1) != 0;
      signs_.push_back(!is_finite ? 0 : flip ? -1 : 1);
    }
    // A complex column is left out if either of its parts is.
    for (std::int64_t j = 0; combines_parts() && j < p_.n; j += 2) {
      if (signs_[index(j)] == 0 || signs_[index(j + 1)] == 0) signs_[index(j)] = signs_[index(j + 1)] = 0;
    }
    multiply_b();
  }

  // Error of row i of C divided by the allowed error; nothing where the row or a sum on the way is not
  // finite.
  template <class Computed>
  std::optional<double> ratio(std::int64_t i, const ElementBound& element, const Computed& computed) const {
    if (reads_b() && !all_finite(p_.a + i * p_.k)) return {};
    Sum sum;
    double magnitude_of_a = 0;
    double magnitude_without_alpha = 0;
    for (std::int64_t p = 0; reads_b() && p < p_.k; ++p) {
      const auto x = static_cast<double>(p_.a[i * p_.k + p]);
      sum.value += x * products_[index(p)].value;
      sum.magnitude += std::fabs(x) * products_[index(p)].magnitude;
      magnitude_without_alpha += std::fabs(x) * magnitudes_without_alpha_[index(p)];
      magnitude_of_a += std::fabs(x);
    }
    for (std::int64_t j = 0; (p_.beta != 0 || p_.beta_im != 0) && j < p_.n; ++j) {
      const auto x = static_cast<double>(p_.c0[i * p_.n + j]);
      if (!std::isfinite(x)) return {};
      sum.value += x * weight(j, p_.beta, p_.beta_im);
      sum.magnitude += std::fabs(x) * weight_magnitude(j, p_.beta, p_.beta_im);
    }
    constexpr double largest = std::numeric_limits<Part>::max();
    // The sum may overflow before a small alpha multiplies it.
    if (!(sum.magnitude < largest / 4 && magnitude_without_alpha < largest / 4)) return {};
    double row_sum = 0;
    for (std::int64_t j = 0; j < p_.n; ++j) {
      if (signs_[index(j)] != 0) row_sum += signs_[index(j)] * computed(j);
    }
    const auto n = static_cast<double>(p_.n), k = static_cast<double>(p_.k);
    // Error of the sums in this function: k + 2 n roundings, and underflow.
    const double own_error =
        (k + 2 * n + 16) * 0x1p-52 * sum.magnitude + (n * magnitude_of_a + k + n) * 0x1p-1073;
    const double allowed = element.relative * sum.magnitude + n * element.absolute + own_error;
    if (!std::isfinite(allowed)) return {};
    const double error = std::fabs(row_sum - sum.value);
    return std::isnan(error) ? HUGE_VAL : error / allowed;
  }

 private:
  struct Sum {
    double value = 0;
    double magnitude = 0;
  };

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  bool reads_b() const { return p_.alpha != 0 || p_.alpha_im != 0; }
  // True if a scalar combines real and imaginary parts.
  bool combines_parts() const { return p_.alpha_im != 0 || p_.beta_im != 0; }
  bool all_finite(const Part* vector) const {
    for (std::int64_t p = 0; p < p_.k; ++p) {
      if (!std::isfinite(vector[p])) return false;
    }
    return true;
  }

  // Coefficient of real column j in the sum of a row; complex scalars also add in the other part, column j ^
  // 1.
  double weight(std::int64_t j, double re, double im) const {
    const double direct = signs_[index(j)] * re;
    return im == 0 ? direct : direct + (j % 2 == 0 ? 1 : -1) * signs_[index(j ^ 1)] * im;
  }
  double weight_magnitude(std::int64_t j, double re, double im) const {
    const double direct = std::fabs(signs_[index(j)] * re);
    return im == 0 ? direct : direct + std::fabs(signs_[index(j ^ 1)] * im);
  }

  // alpha B x.
  void multiply_b() {
    products_.resize(index(p_.k));
    magnitudes_without_alpha_.resize(index(p_.k));
    for (std::int64_t j = 0; reads_b() && j < p_.n; ++j) {
      if (signs_[index(j)] == 0) continue;
      const double factor = weight(j, p_.alpha, p_.alpha_im);
      const double magnitude = weight_magnitude(j, p_.alpha, p_.alpha_im);
      for (std::int64_t p = 0; p < p_.k; ++p) {
        const auto x = static_cast<double>(p_.b[j * p_.k + p]);
        products_[index(p)].value += factor * x;
        products_[index(p)].magnitude += magnitude * std::fabs(x);
        magnitudes_without_alpha_[index(p)] += std::fabs(x);
      }
    }
  }

  RealProduct<Part> p_;
  std::vector<int> signs_;
  std::vector<Sum> products_;
  std::vector<double> magnitudes_without_alpha_;
};

}  // namespace kintsugi::test::fuzz
