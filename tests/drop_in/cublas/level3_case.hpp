// A random call of a level-3 routine with small integers: its arguments, and what C must be afterwards.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/drop_in/cublas/entries.hpp"

namespace kintsugi::test {

enum class Routine : std::uint8_t { syrk, herk, syr2k, her2k, syrkx, herkx, symm, hemm, trmm, trsm };

struct Level3Entry {
  const char* name;
  Routine routine;
  kintsugi_type type;
  bool has_64_bit_integers;

  bool is_update() const { return routine <= Routine::herkx; }
  bool has_two_products() const { return routine == Routine::syr2k || routine == Routine::her2k; }
  bool has_b() const { return routine != Routine::syrk && routine != Routine::herk && !is_solve(); }
  bool is_hermitian() const {
    return routine == Routine::herk || routine == Routine::her2k || routine == Routine::herkx ||
           routine == Routine::hemm;
  }
  bool has_diag() const { return routine >= Routine::trmm; }
  bool is_solve() const { return routine == Routine::trsm; }
};

struct Level3Arguments {
  BlasHandle handle = nullptr;
  int side = 0, uplo = 0, op = 0, diag = 0;
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;  // B of trsm
  std::int64_t ldc = 1;
};

const std::vector<Level3Entry>& level3_entries();
int call(const Level3Entry& entry, const Level3Arguments& arguments);

template <class T>
class Level3Case {
 public:
  Level3Case(const Level3Entry& entry, std::mt19937_64& random) : entry_(entry), random_(random) {
    draw_modes();
    draw_scalars();
    fill();
  }

  Level3Arguments arguments;

  std::int64_t order() const { return entry_.is_update() || arguments.side == 1 ? arguments.n : arguments.m; }
  bool has_zero_alpha() const { return alpha_ == T(0); }

  // "" if C's memory is what it must be; else the first element that is not.
  std::string error() const {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (!same(c_[i], expected_[i])) return "element " + std::to_string(i) + " of C's memory differs";
    return "";
  }

  std::string text() const {
    const Level3Arguments& g = arguments;
    std::string text = entry_.name;
    for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{" side=", g.side},
                                      {" uplo=", g.uplo},
                                      {" op=", g.op},
                                      {" diag=", g.diag},
                                      {" m=", g.m},
                                      {" n=", g.n},
                                      {" k=", g.k},
                                      {" lda=", g.lda},
                                      {" ldb=", g.ldb},
                                      {" ldc=", g.ldc}})
      text += name + std::to_string(value);
    return text;
  }

 private:
  static constexpr bool is_complex = !std::is_floating_point_v<T>;
  using Matrix = std::vector<T>;

  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  T draw_element() {
    const auto real = static_cast<double>(draw(-3, 3));
    if constexpr (is_complex) {
      return T(std::complex<double>(real, static_cast<double>(draw(-3, 3))));
    } else {
      return static_cast<T>(real);
    }
  }
  static T conjugate_of(T x) {
    if constexpr (is_complex) return std::conj(x);
    return x;
  }
  static T nan() { return T(std::numeric_limits<double>::quiet_NaN()); }
  static std::size_t place(std::int64_t i, std::int64_t j, std::int64_t ld) {
    return static_cast<std::size_t>(i + j * ld);
  }

  void draw_modes() {
    Level3Arguments& g = arguments;
    g.side = entry_.is_update() ? 0 : static_cast<int>(draw(0, 1));
    g.uplo = static_cast<int>(draw(0, 1));
    if (entry_.is_update()) g.op = static_cast<int>(draw(0, 1)) * (entry_.is_hermitian() ? 2 : 1);
    if (entry_.has_diag()) g.op = static_cast<int>(draw(0, is_complex ? 2 : 1));
    g.diag = entry_.has_diag() ? static_cast<int>(draw(0, 1)) : 0;
    const std::int64_t order = draw(0, 3) == 0 ? draw(1, 60) : draw(64, 150), other = draw(1, 40);
    g.m = entry_.is_update() || g.side == 0 ? order : other;
    g.n = entry_.is_update() || g.side == 1 ? order : other;
    g.k = entry_.is_update() ? draw(1, 60) : 0;
    const auto padding = [&] { return draw(0, 1) * draw(0, 5); };
    g.lda = (entry_.is_update() && g.op != 0 ? g.k : order) + padding();
    g.ldb = (entry_.is_update() && g.op != 0 ? g.k : g.m) + padding();
    g.ldc = g.m + padding();
  }

  // Powers of two for equations, whose solutions then stay integers or halves of integers.
  void draw_scalars() {
    alpha_ = draw(0, 7) == 0 ? T(0) : entry_.is_solve() ? T(draw(0, 1) == 0 ? 2 : -1) : draw_element();
    beta_ = draw(0, 2) == 0 ? T(0) : draw(0, 3) == 0 ? T(1) : draw_element();
    if (entry_.routine == Routine::herk) alpha_ = std::real(alpha_);
    if (entry_.is_update() && entry_.is_hermitian()) beta_ = std::real(beta_);
    arguments.alpha = &alpha_;
    arguments.beta = &beta_;
  }

  void fill() {
    Level3Arguments& g = arguments;
    if (entry_.is_update()) fill_update();
    if (!entry_.is_update() && !entry_.has_diag()) fill_symmetric();
    if (entry_.routine == Routine::trmm) fill_triangular();
    if (entry_.is_solve()) fill_solve();
    g.a = a_.data();
    if (g.b == nullptr) g.b = b_.data();
    g.c = c_.data();
  }

  Matrix matrix(std::int64_t rows, std::int64_t columns, std::int64_t ld, bool is_read) {
    Matrix data(place(0, columns, ld), nan());
    for (std::int64_t j = 0; j < columns && is_read; ++j)
      for (std::int64_t i = 0; i < rows; ++i) data[place(i, j, ld)] = draw_element();
    return data;
  }
  bool is_in_triangle(std::int64_t i, std::int64_t j) const { return arguments.uplo == 0 ? i >= j : i <= j; }

  void fill_update() {
    const Level3Arguments& g = arguments;
    const bool has_rows = g.op == 0;
    a_ = matrix(has_rows ? g.n : g.k, has_rows ? g.k : g.n, g.lda, !has_zero_alpha());
    b_ = entry_.has_b() ? matrix(has_rows ? g.n : g.k, has_rows ? g.k : g.n, g.ldb, !has_zero_alpha()) : a_;
    const std::int64_t ldb = entry_.has_b() ? g.ldb : g.lda;
    c_ = matrix(g.n, g.n, g.ldc, beta_ != T(0));
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.n; ++i)
        if (!is_in_triangle(i, j)) c_[place(i, j, g.ldc)] = nan();
    expected_ = c_;
    // Element (i, p) of the left factor and (p, j) of the right one. op = C conjugates the left one.
    const auto left = [&](const Matrix& x, std::int64_t ld, std::int64_t i, std::int64_t p) {
      const T value = x[has_rows ? place(i, p, ld) : place(p, i, ld)];
      return entry_.is_hermitian() && !has_rows ? conjugate_of(value) : value;
    };
    const auto right = [&](const Matrix& x, std::int64_t ld, std::int64_t p, std::int64_t j) {
      const T value = x[has_rows ? place(j, p, ld) : place(p, j, ld)];
      return entry_.is_hermitian() && has_rows ? conjugate_of(value) : value;
    };
    const T other_alpha = entry_.is_hermitian() ? conjugate_of(alpha_) : alpha_;
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.n; ++i) {
        if (!is_in_triangle(i, j)) continue;
        T sum(0), other_sum(0);
        for (std::int64_t p = 0; p < g.k && !has_zero_alpha(); ++p) {
          sum += left(a_, g.lda, i, p) * right(b_, ldb, p, j);
          if (entry_.has_two_products()) other_sum += left(b_, ldb, i, p) * right(a_, g.lda, p, j);
        }
        const bool is_real = entry_.is_hermitian() && i == j;
        put(i, j, alpha_ * sum + other_alpha * other_sum, is_real);
      }
  }

  void put(std::int64_t i, std::int64_t j, T product, bool is_real) {
    T& result = expected_[place(i, j, arguments.ldc)];
    const T old = is_real ? T(std::real(result)) : result;
    result = beta_ == T(0) ? product : product + beta_ * old;
    if (is_real) result = T(std::real(result));
  }

  void fill_symmetric() {
    const Level3Arguments& g = arguments;
    const std::int64_t size = order();
    Matrix full = matrix(size, size, size, true);
    a_ = Matrix(place(0, size, g.lda), nan());
    for (std::int64_t j = 0; j < size; ++j)
      for (std::int64_t i = 0; i < size; ++i) {
        if (!is_in_triangle(i, j)) continue;
        const T value = full[place(i, j, size)];
        if (!has_zero_alpha()) a_[place(i, j, g.lda)] = value;
        full[place(j, i, size)] = entry_.is_hermitian() ? conjugate_of(value) : value;
        if (entry_.is_hermitian() && i == j) full[place(i, i, size)] = T(std::real(value));
      }
    b_ = matrix(g.m, g.n, g.ldb, !has_zero_alpha());
    c_ = matrix(g.m, g.n, g.ldc, beta_ != T(0));
    expected_ = c_;
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.m; ++i) {
        T sum(0);
        for (std::int64_t p = 0; p < size && !has_zero_alpha(); ++p)
          sum += g.side == 0 ? full[place(i, p, size)] * b_[place(p, j, g.ldb)]
                             : b_[place(i, p, g.ldb)] * full[place(p, j, size)];
        put(i, j, alpha_ * sum, false);
      }
  }

  // C is B in half of the cases.
  void fill_triangular() {
    Level3Arguments& g = arguments;
    const std::int64_t size = order();
    a_ = Matrix(place(0, size, g.lda), nan());
    Matrix full(place(0, size, size), T(0));  // op(A)
    for (std::int64_t j = 0; j < size; ++j)
      for (std::int64_t i = 0; i < size; ++i) {
        if (!is_in_triangle(i, j)) continue;
        const T value = draw_element();
        if (!has_zero_alpha() && (i != j || g.diag == 0)) a_[place(i, j, g.lda)] = value;
        const T used = i == j && g.diag == 1 ? T(1) : value;
        full[g.op == 0 ? place(i, j, size) : place(j, i, size)] = g.op == 2 ? conjugate_of(used) : used;
      }
    const bool is_in_place = draw(0, 1) == 0;
    if (is_in_place) g.ldb = g.ldc;
    b_ = matrix(g.m, g.n, g.ldb, !has_zero_alpha());
    c_ = is_in_place ? b_ : matrix(g.m, g.n, g.ldc, false);
    if (is_in_place) g.b = c_.data();
    expected_ = c_;
    beta_ = T(0);
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.m; ++i) {
        T sum(0);
        for (std::int64_t p = 0; p < size && !has_zero_alpha(); ++p)
          sum += g.side == 0 ? full[place(i, p, size)] * b_[place(p, j, g.ldb)]
                             : b_[place(i, p, g.ldb)] * full[place(p, j, size)];
        put(i, j, alpha_ * sum, false);
      }
  }

  // op(A) X with integers X are the right sides; alpha X must come back.
  void fill_solve() {
    const Level3Arguments& g = arguments;
    const std::int64_t size = order();
    a_ = Matrix(place(0, size, g.lda), nan());
    Matrix full(place(0, size, size), T(0));  // op(A)
    for (std::int64_t j = 0; j < size; ++j)
      for (std::int64_t i = 0; i < size; ++i) {
        if (!is_in_triangle(i, j)) continue;
        const T value = i == j ? draw_divisor() : draw(0, 3) == 0 ? draw_element() : T(0);
        if (i != j || g.diag == 0) a_[place(i, j, g.lda)] = has_zero_alpha() ? nan() : value;
        const T used = i == j && g.diag == 1 ? T(1) : value;
        full[g.op == 0 ? place(i, j, size) : place(j, i, size)] = g.op == 2 ? conjugate_of(used) : used;
      }
    const Matrix x = matrix(g.m, g.n, g.ldc, true);
    c_ = x;
    expected_ = x;
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.m; ++i) {
        T sum(0);
        for (std::int64_t p = 0; p < size; ++p)
          sum += g.side == 0 ? full[place(i, p, size)] * x[place(p, j, g.ldc)]
                             : x[place(i, p, g.ldc)] * full[place(p, j, size)];
        c_[place(i, j, g.ldc)] = sum;
        T& result = expected_[place(i, j, g.ldc)];
        result = has_zero_alpha() ? T(0) : alpha_ * result;
      }
  }
  T draw_divisor() { return T(draw(0, 1) == 0 ? 1 : draw(0, 1) == 0 ? -1 : 2); }

  // NaN equals NaN, and zeros of both signs are equal.
  static bool same(T x, T y) {
    const std::complex<double> left(x), right(y);
    const auto equal = [](double a, double b) { return a == b || (a != a && b != b); };
    return equal(left.real(), right.real()) && equal(left.imag(), right.imag());
  }

  const Level3Entry& entry_;
  std::mt19937_64& random_;
  alignas(16) T alpha_{};
  alignas(16) T beta_{};
  Matrix a_, b_, c_, expected_;
};

}  // namespace kintsugi::test
