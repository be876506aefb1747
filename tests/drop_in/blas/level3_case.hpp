// A random call of a routine with a triangle or a symmetric matrix.
#pragma once

#include <string>

#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/matrix.hpp"

namespace kintsugi::test {

// Triangles beyond 64 are computed in blocks.
inline std::int64_t draw_order(Random& random) {
  if (random() % 6 == 0) return draw_side(random, {64, 65, 90, 129, 200});
  return draw_side(random, {0, 1, 1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 47});
}

template <class T>
class Level3Case {
 public:
  Level3Case(const Entry& entry, const Random& random, bool forwarded)
      : entry_(entry), random_(random), forwarded_(forwarded), x_(draw_arguments(entry, random_)),
        alpha_(has_real_alpha() ? T(draw_scalar<Real>(random_)) : draw_scalar<T>(random_)),
        beta_(has_real_beta() ? T(draw_scalar<Real>(random_)) : draw_scalar<T>(random_)),
        a_(is_sided()       ? order()
           : x_.op_a == 'N' ? x_.n
                            : x_.k,
           is_sided()       ? order()
           : x_.op_a == 'N' ? x_.k
                            : x_.n,
           x_.row_major, draw_padding(random_)),
        b_(is("symm") || is("hemm") ? x_.m
           : op_of_b() == 'N'       ? x_.k
                                    : x_.n,
           is("symm") || is("hemm") || op_of_b() == 'N' ? x_.n : x_.k, x_.row_major, draw_padding(random_)),
        c_(x_.m, x_.n, x_.row_major, draw_padding(random_)) {
    fill();
  }

  // Returns a description of the failure; "" if there is none.
  std::string run() {
    const Matrix<T> a = a_, b = b_, before = c_;
    x_.alpha = &alpha_, x_.beta = &beta_;
    x_.a = a_.data(), x_.lda = a_.ld();
    x_.b = b_.data(), x_.ldb = b_.ld();
    x_.c = c_.data(), x_.ldc = c_.ld();
    entry_.call(x_);
    if (!a_.has_bits_of(a) || !b_.has_bits_of(b)) return "A or B was written";
    if (!c_.differs_only(before, [this](std::int64_t i, std::int64_t j) { return writes(i, j); }))
      return "an element outside the triangle of C, or outside C, was written";
    if (leaves_c()) return c_.has_bits_of(before) ? "" : "C was written where nothing is to be done";
    return first_wrong_element(before);
  }

  std::string text() const {
    const std::string letters{x_.side, x_.uplo, x_.op_a, x_.op_b, x_.diag};
    return std::string(x_.row_major ? "row-major " : "column-major ") + "side, uplo, ops, diag " + letters +
           " m = " + std::to_string(x_.m) + " n = " + std::to_string(x_.n) + " k = " + std::to_string(x_.k);
  }

 private:
  using Real = typename Parts<T>::Real;

  static Arguments draw_arguments(const Entry& entry, Random& random) {
    const bool is_hermitian = entry.is("herk") || entry.is("her2k");
    const bool is_update = is_hermitian || entry.is("syrk") || entry.is("syr2k");
    Arguments x;
    x.row_major = entry.is_cblas && random() % 2 == 0;
    x.side = one_of(random, {'L', 'R'});
    x.uplo = one_of(random, {'U', 'L'});
    x.diag = one_of(random, {'N', 'U'});
    x.op_a = one_of(random, {'N', 'T', 'C'});
    x.op_b = one_of(random, {'N', 'T', 'C'});
    if (is_hermitian && x.op_a == 'T') x.op_a = 'C';
    if (is_update && !is_hermitian && Parts<T>::is_complex && x.op_a == 'C') x.op_a = 'T';
    x.n = draw_order(random);
    const bool is_square = is_update || entry.is("gemmt") || entry.is("gemmtr");
    x.m = is_square ? x.n : draw_order(random);
    x.k = draw_side(random, {0, 1, 2, 3, 7, 16, 33, 65});
    return x;
  }

  bool is(std::string_view routine) const { return entry_.is(routine); }
  bool is_sided() const { return is("symm") || is("hemm") || is("trmm") || is("trsm"); }
  bool is_triangular() const { return is("trmm") || is("trsm"); }
  bool is_hermitian() const { return is("herk") || is("her2k") || is("hemm"); }
  bool has_real_alpha() const { return is("herk"); }
  bool has_real_beta() const { return is("herk") || is("her2k"); }
  char op_of_b() const { return is("gemmt") || is("gemmtr") ? x_.op_b : x_.op_a == 'N' ? 'T' : 'N'; }
  std::int64_t order() const { return x_.side == 'L' ? x_.m : x_.n; }

  bool in_triangle(std::int64_t i, std::int64_t j) const { return x_.uplo == 'L' ? i >= j : i <= j; }
  bool writes(std::int64_t i, std::int64_t j) const { return is_sided() || in_triangle(i, j); }

  bool leaves_c() const {
    if (x_.m == 0 || x_.n == 0) return true;
    if (is_triangular()) return false;
    const bool multiplies_nothing = alpha_ == T(0) || (!is_sided() && x_.k == 0);
    return multiplies_nothing && beta_ == T(1);
  }

  void fill() {
    const Distribution distribution = is("trsm") ? Distribution::uniform : draw_distribution(random_);
    const int specials =
        !forwarded_ && !is("trsm") && random_() % 6 == 0 ? 1 + static_cast<int>(random_() % 2) : 0;
    a_.fill(random_, distribution, specials);
    b_.fill(random_, distribution, random_() % 2 == 0 ? specials : 0);
    c_.fill(random_, distribution, is("trmm") && random_() % 2 == 0 ? specials : 0);
    if (is("trsm")) scale_triangle();
    if (is_sided()) hide_unreferenced();
    if (!is_sided()) c_.fill_with_nan([this](std::int64_t i, std::int64_t j) { return !in_triangle(i, j); });
    if (beta_ == T(0) && !is_triangular()) c_.fill_with_nan();
    if (alpha_ == T(0) && !forwarded_) {
      a_.fill_with_nan();
      b_.fill_with_nan();
      if (is_triangular()) c_.fill_with_nan();
    }
    if (!forwarded_ && is_hermitian()) spoil_imaginary_parts(is("hemm") ? a_ : c_);
  }

  // A triangle of a small condition number, as trsm's are in use: its solution neither over- nor underflows.
  void scale_triangle() {
    for (std::int64_t j = 0; j < order(); ++j)
      for (std::int64_t i = 0; i < order(); ++i)
        a_.at(i, j) = i == j ? a_.at(i, j) + T(2) : a_.at(i, j) / T(static_cast<Real>(order()));
  }

  // NaN wherever A is not to be read.
  void hide_unreferenced() {
    const bool has_unit_diagonal = is_triangular() && x_.diag == 'U';
    a_.fill_with_nan(
        [&](std::int64_t i, std::int64_t j) { return !in_triangle(i, j) || (i == j && has_unit_diagonal); });
  }

  // The diagonal of a Hermitian matrix is real whatever is stored.
  void spoil_imaginary_parts(Matrix<T>& matrix) {
    if constexpr (Parts<T>::is_complex)
      for (std::int64_t i = 0; i < matrix.rows(); ++i)
        matrix.at(i, i).imag(std::numeric_limits<Real>::quiet_NaN());
  }

  // ---------------------------------------------------------------- the matrices as they are meant

  T symmetric(std::int64_t i, std::int64_t j) const {
    if (in_triangle(i, j)) return i == j && is_hermitian() ? T(std::real(a_.at(i, j))) : a_.at(i, j);
    return is_hermitian() ? conjugate(a_.at(j, i)) : a_.at(j, i);
  }
  // An element of op(A), of which has_triangular() says whether it is one of the triangle.
  T triangular(std::int64_t i, std::int64_t j) const {
    return i == j && x_.diag == 'U' ? T(1) : a_.at(x_.op_a, i, j);
  }
  bool has_triangular(std::int64_t i, std::int64_t j) const {
    return x_.op_a == 'N' ? in_triangle(i, j) : in_triangle(j, i);
  }
  // An element of the second operand of an update by X and its transpose.
  T transposed(const Matrix<T>& x, std::int64_t l, std::int64_t j) const {
    const T value = x.at(x_.op_a, j, l);
    return is_hermitian() ? conjugate(value) : value;
  }

  // ---------------------------------------------------------------- oracle

  // Vectors whose products are added up: for an update, rows of op(X) and columns of its transpose, or of
  // op(B); for a sided routine, rows of A and columns of the other matrix, or the other way round.
  struct Factors {
    Vectors<T> left, right;
  };

  Factors update_factors(const Matrix<T>& left, const Matrix<T>& right) const {
    const bool is_product = is("gemmt") || is("gemmtr");
    return {{x_.n, x_.k, [&](std::int64_t i, std::int64_t l) { return left.at(x_.op_a, i, l); }},
            {x_.n, x_.k, [&](std::int64_t j, std::int64_t l) {
               return is_product ? right.at(x_.op_b, l, j) : transposed(right, l, j);
             }}};
  }

  // Elements of A beside its triangle are zeros here, and are left out of the sums.
  Factors sided_factors(const Matrix<T>& other) const {
    const bool is_left = x_.side == 'L';
    const auto a = [&](std::int64_t row, std::int64_t column) {
      if (!is_triangular()) return symmetric(row, column);
      return has_triangular(row, column) ? triangular(row, column) : T(0);
    };
    return {
        {x_.m, order(), [&](std::int64_t i, std::int64_t l) { return is_left ? a(i, l) : other.at(i, l); }},
        {x_.n, order(), [&](std::int64_t j, std::int64_t l) { return is_left ? other.at(l, j) : a(l, j); }}};
  }

  // Inner indices of a sided routine's element: of a triangle those that lie in it.
  std::span<const T> inner(std::span<const T> vector, std::int64_t i, std::int64_t j) const {
    if (!is_triangular()) return vector;
    const bool is_left = x_.side == 'L';
    const std::int64_t diagonal = is_left ? i : j;
    const bool is_lower = (x_.uplo == 'L') == (x_.op_a == 'N');
    const auto first = static_cast<std::size_t>(is_lower == is_left ? 0 : diagonal);
    const auto end = is_lower == is_left ? static_cast<std::size_t>(diagonal + 1) : vector.size();
    return vector.subspan(first, end - first);
  }

  Expected expected_update(const Factors& factors, const Factors& others, std::int64_t i, std::int64_t j,
                           const T& c) const {
    const bool has_two = is("syr2k") || is("her2k");
    ElementOracle<T> first;
    first.add(factors.left[i], factors.right[j]);
    Expected sum = first.result(alpha_, beta_, i == j && is_hermitian() ? T(std::real(c)) : c);
    if (has_two) {
      ElementOracle<T> second;
      second.add(others.left[i], others.right[j]);
      const Expected more = second.result(is_hermitian() ? conjugate(alpha_) : alpha_, T(0), T(0));
      sum = {sum.value + more.value, 2 * sum.allowed + 2 * more.allowed};
    }
    if (i == j && is_hermitian()) sum.value.imag(0);
    return sum;
  }

  Expected expected_sided(const Factors& factors, std::int64_t i, std::int64_t j, const T& before) const {
    ElementOracle<T> oracle;
    oracle.add(inner(factors.left[i], i, j), inner(factors.right[j], i, j));
    oracle.count_as(order());
    return is_triangular() ? oracle.result(alpha_, T(0), T(0)) : oracle.result(alpha_, beta_, before);
  }

  // The right side of an equation that the solution fulfils up to rounding errors: alpha B = op(A) X.
  Expected expected_right_side(const Factors& factors, std::int64_t i, std::int64_t j) const {
    ElementOracle<T> oracle;
    oracle.add(inner(factors.left[i], i, j), inner(factors.right[j], i, j));
    oracle.count_as(order() + 64);  // eight roundings more for each of at most seven levels of recursion
    return oracle.result(T(1), T(0), T(0));
  }

  std::string first_wrong_element(const Matrix<T>& before) const {
    const bool solves = is("trsm") && alpha_ != T(0);
    const bool has_two = is("syr2k") || is("her2k");
    const Factors factors = is_sided()                 ? sided_factors(solves            ? c_
                                                                       : is_triangular() ? before
                                                                                         : b_)
                            : is("syrk") || is("herk") ? update_factors(a_, a_)
                                                       : update_factors(a_, b_);
    const Factors others = has_two ? update_factors(b_, a_) : Factors{{0, 0, nothing}, {0, 0, nothing}};
    for (std::int64_t j = 0; j < x_.n; ++j) {
      for (std::int64_t i = 0; i < x_.m; ++i) {
        if (!writes(i, j)) continue;
        const Expected expected = solves       ? expected_right_side(factors, i, j)
                                  : is_sided() ? expected_sided(factors, i, j, before.at(i, j))
                                               : expected_update(factors, others, i, j, before.at(i, j));
        const bool right =
            solves ? is_near(right_side(before.at(i, j)), expected) : meets(c_.at(i, j), expected);
        const Wide value = solves ? right_side(before.at(i, j)) : wide(c_.at(i, j));
        if (!right) return difference(i, j, value, expected);
        if (i == j && !is_sided() && is_hermitian() && std::imag(c_.at(i, j)) != 0)
          return "C(" + std::to_string(i) + ", " + std::to_string(i) + ") is not real";
      }
    }
    return "";
  }

  static T nothing(std::int64_t, std::int64_t) { return T(0); }

  Wide right_side(const T& b) const { return product(wide(alpha_), wide(b)); }

  const Entry& entry_;
  Random random_;
  bool forwarded_;
  Arguments x_;
  T alpha_, beta_;
  Matrix<T> a_, b_, c_;
};

}  // namespace kintsugi::test
