// A random product of small integers: its arguments, and what C must be afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/drop_in/cublas/entries.hpp"

namespace kintsugi::test {

template <class T>
constexpr bool is_complex_element = !std::is_floating_point_v<T>;

template <class T>
kintsugi_type type_of_element() {
  if constexpr (std::is_same_v<T, float>) return KINTSUGI_F32;
  if constexpr (std::is_same_v<T, double>) return KINTSUGI_F64;
  return std::is_same_v<T, std::complex<float>> ? KINTSUGI_C32 : KINTSUGI_C64;
}

// Integers, so that every order of additions gives the same bits. Elements outside of the matrices are NaN.
template <class T>
class RandomCase {
 public:
  RandomCase(const Entry& entry, std::mt19937_64& random) : entry_(entry), random_(random) {
    arguments.type = type_of_element<T>();
    arguments.compute = sizeof(T) / (is_complex_element<T> ? 2 : 1) == sizeof(float) ? 68 : 70;
    draw_shape();
    draw_scalars();
    fill();
    point();
  }

  Arguments arguments;

  // "" if C is what it must be; else the first element that is not.
  std::string error() const {
    const std::vector<T> expected = expected_c();
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (!same(c_[i], expected[i])) return "element " + std::to_string(i) + " of C's memory differs";
    return "";
  }

  std::string text() const {
    const Arguments& g = arguments;
    return std::string(entry_.name) + " op_a=" + std::to_string(g.op_a) + " op_b=" + std::to_string(g.op_b) +
           " m=" + std::to_string(g.m) + " n=" + std::to_string(g.n) + " k=" + std::to_string(g.k) +
           " lda=" + std::to_string(g.lda) + " ldb=" + std::to_string(g.ldb) +
           " ldc=" + std::to_string(g.ldc) + " count=" + std::to_string(g.count) +
           " strides=" + std::to_string(g.stride_a) + "," + std::to_string(g.stride_b) + "," +
           std::to_string(g.stride_c) + " type=" + std::to_string(g.type) +
           (bias_.empty() ? "" : " with a bias") +
           (g.activation == 0 ? "" : " activation=" + std::to_string(g.activation));
  }

 private:
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  T draw_element() {
    const auto real = static_cast<double>(draw(-4, 4));
    if constexpr (is_complex_element<T>) {
      return T(std::complex<double>(real, static_cast<double>(draw(-4, 4))));
    } else {
      return static_cast<T>(real);
    }
  }

  void draw_shape() {
    Arguments& g = arguments;
    g.op_a = static_cast<int>(draw(0, 2));
    g.op_b = static_cast<int>(draw(0, 2));
    g.m = draw(1, 40);
    g.n = draw(1, 40);
    g.k = draw(1, 59);
    if (g.k >= 4) ++g.k;  // new_real_products() takes k = 4 of cublasLtMatmul for an epilogue
    const auto padding = [&] { return draw(0, 1) * draw(0, 5); };
    g.lda = (g.op_a == 0 ? g.m : g.k) + padding();
    g.ldb = (g.op_b == 0 ? g.k : g.n) + padding();
    g.ldc = g.m + padding();
    const bool is_batch = entry_.is_strided() || entry_.has_pointers();
    g.count = is_batch ? draw(1, 4) : 1;
    g.stride_a = draw(0, 3) == 0 && entry_.is_strided() ? 0 : g.lda * columns_a() + padding();
    g.stride_b = draw(0, 3) == 0 && entry_.is_strided() ? 0 : g.ldb * columns_b() + padding();
    g.stride_c = g.ldc * g.n + padding();
  }
  std::int64_t columns_a() const { return arguments.op_a == 0 ? arguments.k : arguments.m; }
  std::int64_t columns_b() const { return arguments.op_b == 0 ? arguments.n : arguments.k; }

  // beta = 0 with NaN in C, and alpha = 0 with NaN in A, must give no NaN.
  void draw_scalars() {
    alpha_ = draw(0, 7) == 0 ? T(0) : draw_element();
    beta_ = draw(0, 2) == 0 ? T(0) : draw(0, 3) == 0 ? T(1) : draw_element();
    arguments.alpha = &alpha_;
    arguments.beta = &beta_;
    if (is_complex_element<T> || entry_.family != Family::matmul || draw(0, 1) == 0) return;
    if (draw(0, 3) > 0)
      for (std::int64_t i = 0; i < arguments.m; ++i) bias_.push_back(draw_element());
    arguments.bias = bias_.empty() ? nullptr : bias_.data();
    arguments.activation = std::array{0, 2, 32}[static_cast<std::size_t>(draw(0, 2))];
  }

  void fill() {
    const Arguments& g = arguments;
    const T nan(std::numeric_limits<double>::quiet_NaN());
    a_.assign(static_cast<std::size_t>(g.stride_a * (g.count - 1) + g.lda * columns_a()), nan);
    b_.assign(static_cast<std::size_t>(g.stride_b * (g.count - 1) + g.ldb * columns_b()), nan);
    c_.assign(static_cast<std::size_t>(g.stride_c * (g.count - 1) + g.ldc * g.n), nan);
    for (std::int64_t t = 0; t < g.count; ++t) {
      fill_matrix(a_, t * g.stride_a, g.lda, g.op_a == 0 ? g.m : g.k, columns_a(), alpha_ == T(0));
      fill_matrix(b_, t * g.stride_b, g.ldb, g.op_b == 0 ? g.k : g.n, columns_b(), alpha_ == T(0));
      fill_matrix(c_, t * g.stride_c, g.ldc, g.m, g.n, beta_ == T(0));
    }
    before_ = c_;
  }
  void fill_matrix(std::vector<T>& data, std::int64_t first, std::int64_t ld, std::int64_t rows,
                   std::int64_t columns, bool leave_nan) {
    if (leave_nan) return;
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        data[static_cast<std::size_t>(first + i + j * ld)] = draw_element();
  }

  void point() {
    arguments.a = a_.data();
    arguments.b = b_.data();
    arguments.c = c_.data();
    if (!entry_.has_pointers()) return;
    for (std::int64_t t = 0; t < arguments.count; ++t) {
      pointers_a_.push_back(a_.data() + t * arguments.stride_a);
      pointers_b_.push_back(b_.data() + t * arguments.stride_b);
      pointers_c_.push_back(c_.data() + t * arguments.stride_c);
    }
    arguments.a = pointers_a_.data();
    arguments.b = pointers_b_.data();
    arguments.c = pointers_c_.data();
  }

  static T element(const std::vector<T>& data, std::int64_t first, int op, std::int64_t ld, std::int64_t row,
                   std::int64_t column) {
    const T value = data[static_cast<std::size_t>(first + (op == 0 ? row + column * ld : column + row * ld))];
    if constexpr (is_complex_element<T>) return op == 2 ? std::conj(value) : value;
    return value;
  }

  std::vector<T> expected_c() const {
    const Arguments& g = arguments;
    std::vector<T> c = before_;
    for (std::int64_t t = 0; t < g.count; ++t) {
      for (std::int64_t j = 0; j < g.n; ++j) {
        for (std::int64_t i = 0; i < g.m; ++i) {
          T sum(0);
          for (std::int64_t p = 0; p < g.k && alpha_ != T(0); ++p)
            sum += element(a_, t * g.stride_a, g.op_a, g.lda, i, p) *
                   element(b_, t * g.stride_b, g.op_b, g.ldb, p, j);
          T& result = c[static_cast<std::size_t>(t * g.stride_c + i + j * g.ldc)];
          result = beta_ == T(0) ? alpha_ * sum : alpha_ * sum + beta_ * result;
          if (!bias_.empty()) result += bias_[static_cast<std::size_t>(i)];
          if constexpr (!is_complex_element<T>) {
            if (g.activation == 2) result = std::max(result, T(0));
            if (g.activation == 32) result = gelu(result);
          }
        }
      }
    }
    return c;
  }

  // The approximation by tanh, in the order of the fake cuBLAS.
  static T gelu(T x) {
    return T(0.5) * x * (T(1) + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
  }

  // NaN equals NaN, and zeros of both signs are equal.
  static bool same(T x, T y) {
    const std::complex<double> left(x), right(y);
    const auto equal = [](double a, double b) { return a == b || (a != a && b != b); };
    return equal(left.real(), right.real()) && equal(left.imag(), right.imag());
  }

  const Entry& entry_;
  std::mt19937_64& random_;
  alignas(16) T alpha_{};
  alignas(16) T beta_{};
  std::vector<T> a_, b_, c_, before_, bias_;
  std::vector<const T*> pointers_a_, pointers_b_;
  std::vector<T*> pointers_c_;
};

}  // namespace kintsugi::test
