// A random call of a routine with vectors: increments of both signs, what must be neither read nor written,
// and the naive sums.
#pragma once

#include <string>
#include <utility>

#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/matrix.hpp"

namespace kintsugi::test {

// 113 significant bits: products of FP64 numbers are exact, and the sum of a case's at most 150 rounds to the
// same FP64 number as the exact one.
__extension__ using Quad = __float128;

// A vector with an increment. Its buffer has bytes of a pattern wherever no element lies.
template <class T>
class StridedVector {
 public:
  StridedVector(std::int64_t length, std::int64_t increment)
      : length_(length), increment_(increment),
        buffer_(static_cast<std::size_t>(std::max<std::int64_t>(length - 1, 0) * std::abs(increment) + 1)) {
    std::memset(static_cast<void*>(buffer_.data()), 0xa5, buffer_.size() * sizeof(T));
  }

  T& operator[](std::int64_t i) {
    const std::int64_t from_begin = increment_ < 0 ? (i - length_ + 1) * increment_ : i * increment_;
    return buffer_[static_cast<std::size_t>(from_begin)];
  }
  const T& operator[](std::int64_t i) const { return (*const_cast<StridedVector*>(this))[i]; }

  // As BLAS takes it: the address of the buffer, whatever the sign of the increment.
  T* data() { return buffer_.data(); }
  std::int64_t length() const { return length_; }
  std::int64_t increment() const { return increment_; }

  void fill(Random& random, Distribution distribution, int specials) {
    for (std::int64_t i = 0; i < length_; ++i) (*this)[i] = draw<T>(random, distribution);
    for (int s = 0; s < specials && length_ > 0; ++s)
      (*this)[static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(length_))] = special<T>(random);
  }
  void fill_with_nan() {
    for (std::int64_t i = 0; i < length_; ++i) (*this)[i] = not_a_number<T>();
  }
  bool has_bits_of(const StridedVector& other) const {
    return std::memcmp(buffer_.data(), other.buffer_.data(), buffer_.size() * sizeof(T)) == 0;
  }
  // True if nothing but elements differs from `before`.
  bool differs_only(StridedVector before) const {
    for (std::int64_t i = 0; i < length_; ++i) before[i] = (*this)[i];
    return has_bits_of(before);
  }

 private:
  std::int64_t length_, increment_;
  std::vector<T> buffer_;
};

// The library that computes the calls.
enum class Computed {
  forwarded,  // the next BLAS: nothing is asked for that only Kintsugi promises
  emulated,   // Kintsugi, within the contract of the type
  exactly     // Kintsugi, and every result is the exact one, rounded once
};

// T: type of the vectors. Result: type of what is written, double for dsdot.
template <class T, class Result = T>
class VectorCase {
 public:
  VectorCase(const Entry& entry, const Random& random, Computed computed)
      : entry_(entry), random_(random), computed_(computed), x_(draw_arguments()),
        alpha_(draw_scalar<T>(random_)), beta_(draw_scalar<T>(random_)),
        a_(has_matrix() ? x_.m : 0, has_matrix() ? x_.n : 0, x_.row_major, draw_padding(random_)),
        first_(is_ger() || has_op_n() ? (is_ger() ? x_.m : x_.n) : x_.m, draw_increment()),
        second_(is_gemv() && has_op_n() ? x_.m : x_.n, draw_increment()) {
    if (is_dot()) alpha_ = T(1);
    if (is_dot() && !is_sdsdot()) beta_ = T(0);
    if (is_ger()) beta_ = T(1);
    fill();
  }

  // Returns a description of the failure; "" if there is none.
  std::string run() {
    const Matrix<T> a = a_;
    const StridedVector<T> first = first_, second = second_;
    x_.alpha = &alpha_, x_.beta = &beta_;
    if (is_sdsdot()) x_.beta = &added_;
    if (is_ger() || is_dot()) {
      x_.a = first_.data(), x_.lda = first_.increment();
      x_.b = second_.data(), x_.ldb = second_.increment();
      x_.c = is_dot() ? static_cast<void*>(&result_) : a_.data(), x_.ldc = a_.ld();
    } else {
      x_.a = a_.data(), x_.lda = a_.ld();
      x_.b = first_.data(), x_.ldb = first_.increment();
      x_.c = second_.data(), x_.ldc = second_.increment();
    }
    entry_.call(x_);
    if (!first_.has_bits_of(first)) return "x was written";
    if (is_dot()) return second_.has_bits_of(second) ? wrong_dot() : "y was written";
    if (is_ger()) {
      if (!second_.has_bits_of(second)) return "y was written";
      if (!a_.differs_only(a, [](std::int64_t, std::int64_t) { return true; })) return "beside A was written";
      if (leaves_result()) return a_.has_bits_of(a) ? "" : "A was written where nothing is to be done";
      return wrong_ger(a, first, second);
    }
    if (!a_.has_bits_of(a)) return "A was written";
    if (!second_.differs_only(second)) return "between the elements of y was written";
    if (leaves_result())
      return second_.has_bits_of(second) ? "" : "y was written where nothing is to be done";
    return wrong_vector(second);
  }

  std::string text() const {
    return std::string(x_.row_major ? "row-major " : "column-major ") + x_.op_a + x_.uplo +
           " m = " + std::to_string(x_.m) + " n = " + std::to_string(x_.n) + " increments " +
           std::to_string(first_.increment()) + ", " + std::to_string(second_.increment());
  }

 private:
  using Real = typename Parts<T>::Real;

  bool is(std::string_view routine) const { return entry_.is(routine); }
  bool is_gemv() const { return is("gemv"); }
  bool is_symmetric() const { return is("symv") || is("hemv"); }
  bool is_ger() const { return is("ger") || is("geru") || is("gerc"); }
  bool is_sdsdot() const { return is("dsdot"); }
  bool is_dot() const { return !is_gemv() && !is_symmetric() && !is_ger(); }
  bool has_matrix() const { return !is_dot(); }
  bool has_op_n() const { return !is_gemv() || x_.op_a == 'N'; }

  Arguments draw_arguments() {
    const auto side = [&] {
      return draw_side(random_, {0, 1, 1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 64, 65, 150});
    };
    Arguments x;
    x.row_major = entry_.is_cblas && !is_dot() && random_() % 2 == 0;
    x.uplo = one_of(random_, {'U', 'L'});
    x.op_a = is_gemv() ? one_of(random_, {'N', 'N', 'T', 'C'}) : 'N';
    x.n = side();
    x.m = is_symmetric() ? x.n : side();
    return x;
  }
  // The increment 0 is legal for dot alone.
  std::int64_t draw_increment() {
    if (is_dot() && random_() % 12 == 0) return 0;
    return one_of<std::int64_t>(random_, {1, 1, 1, 2, 3, -1, -2, -5});
  }

  bool leaves_result() const {
    if (x_.m == 0 || x_.n == 0) return true;
    return alpha_ == T(0) && beta_ == T(1);
  }

  void fill() {
    // Terms far below the others may decide a tie, and Quad does not hold them.
    const bool is_narrow = computed_ == Computed::exactly;
    const Distribution distribution = is_narrow
                                          ? one_of(random_, {Distribution::uniform, Distribution::integers})
                                          : draw_distribution(random_);
    const bool may_be_special = computed_ != Computed::forwarded;
    const int specials = may_be_special && random_() % 6 == 0 ? 1 : 0;
    a_.fill(random_, distribution, specials);
    first_.fill(random_, distribution, random_() % 2 == 0 ? specials : 0);
    second_.fill(random_, distribution, 0);
    added_ = static_cast<float>(draw_real<Real>(random_, Distribution::uniform));
    result_ = not_a_number<Result>();
    if (random_() % 2 == 0) place_cancelling_pair();
    if (is_symmetric()) a_.fill_with_nan([&](std::int64_t i, std::int64_t j) { return !in_triangle(i, j); });
    if (is_dot() || is_ger() || computed_ == Computed::forwarded) return;
    if (is("hemv")) spoil_imaginary_parts();
    if (beta_ == T(0)) second_.fill_with_nan();
    if (alpha_ != T(0)) return;
    a_.fill_with_nan();
    first_.fill_with_nan();
  }

  // Two terms of every sum that cancel each other, far above the others.
  void place_cancelling_pair() {
    const std::int64_t length = first_.length();
    if (length < 2 || first_.increment() == 0 || second_.increment() == 0) return;
    const auto l = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(length - 1));
    const T big(std::ldexp(Real(1), 20));  // a larger one would take bits of small terms from Quad
    if (is_dot()) {
      first_[l] = big, first_[l + 1] = -big;
      second_[l] = second_[l + 1] = T(1);
    } else if (is_gemv()) {
      first_[l] = first_[l + 1] = T(1);
      for (std::int64_t i = 0; i < second_.length(); ++i) {
        (has_op_n() ? a_.at(i, l) : a_.at(l, i)) = big;
        (has_op_n() ? a_.at(i, l + 1) : a_.at(l + 1, i)) = -big;
      }
    }
  }

  bool in_triangle(std::int64_t i, std::int64_t j) const { return x_.uplo == 'L' ? i >= j : i <= j; }

  // The diagonal of a Hermitian matrix is real whatever is stored.
  void spoil_imaginary_parts() {
    if constexpr (Parts<T>::is_complex)
      for (std::int64_t i = 0; i < a_.rows(); ++i) a_.at(i, i).imag(std::numeric_limits<Real>::quiet_NaN());
  }

  // ---------------------------------------------------------------- oracle

  // An element of the matrix that multiplies x.
  T element(std::int64_t i, std::int64_t l) const {
    if (is_gemv()) return a_.at(x_.op_a, i, l);
    if (in_triangle(i, l)) return i == l && is("hemv") ? T(std::real(a_.at(i, l))) : a_.at(i, l);
    return is("hemv") ? conjugate(a_.at(l, i)) : a_.at(l, i);
  }

  struct Sums {
    Quad real = 0, imaginary = 0;

    void add(const Wide& x, const Wide& y) {
      real += Quad(x.real()) * Quad(y.real()) - Quad(x.imag()) * Quad(y.imag());
      imaginary += Quad(x.real()) * Quad(y.imag()) + Quad(x.imag()) * Quad(y.real());
    }
    Sums times(const Wide& factor) const {
      return {real * Quad(factor.real()) - imaginary * Quad(factor.imag()),
              real * Quad(factor.imag()) + imaginary * Quad(factor.real())};
    }
  };

  // "" if the value is alpha times the product of both vectors, plus beta c.
  std::string wrong_element(std::int64_t i, std::int64_t j, const Result& value, const std::vector<T>& left,
                            const std::vector<T>& right, const Wide& beta, const T& c) const {
    ElementOracle<T> oracle;
    oracle.add(left, right);
    Expected expected = oracle.result(alpha_, beta_, c);
    if (is_sdsdot() && left.empty()) expected = {wide(c), 0};
    const bool must_be_equal = computed_ == Computed::exactly && is_finite(expected.value);
    if (!must_be_equal) return meets(value, expected) ? "" : difference(i, j, wide(value), expected);
    Sums sums;
    for (std::size_t l = 0; l < left.size() && alpha_ != T(0); ++l) sums.add(wide(left[l]), wide(right[l]));
    Sums all = sums.times(wide(alpha_));
    if (beta != Wide(0)) all.add(beta, wide(c));
    using ResultReal = typename Parts<Result>::Real;
    const bool right_real = static_cast<ResultReal>(all.real) == std::real(value);
    const bool right_imaginary = static_cast<ResultReal>(all.imaginary) == std::imag(value);
    expected.value = {static_cast<long double>(all.real), static_cast<long double>(all.imaginary)};
    return right_real && right_imaginary ? "" : "not exact: " + difference(i, j, wide(value), expected);
  }

  std::string wrong_dot() {
    std::vector<T> left, right;
    for (std::int64_t l = 0; l < first_.length(); ++l) {
      left.push_back(is("dotc") || is("dotc_sub") ? conjugate(first_[l]) : first_[l]);
      right.push_back(second_[l]);
    }
    if (is_sdsdot()) beta_ = T(1);
    return wrong_element(0, 0, result_, left, right, wide(beta_), is_sdsdot() ? T(added_) : T(0));
  }

  std::string wrong_ger(const Matrix<T>& before, const StridedVector<T>& x, const StridedVector<T>& y) const {
    for (std::int64_t j = 0; j < x_.n; ++j) {
      for (std::int64_t i = 0; i < x_.m; ++i) {
        const std::vector<T> right{is("gerc") ? conjugate(y[j]) : y[j]};
        const std::string wrong = wrong_element(i, j, a_.at(i, j), {x[i]}, right, Wide(1), before.at(i, j));
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

  std::string wrong_vector(const StridedVector<T>& before) const {
    std::vector<T> right;
    for (std::int64_t l = 0; l < first_.length(); ++l) right.push_back(first_[l]);
    for (std::int64_t i = 0; i < second_.length(); ++i) {
      std::vector<T> left;
      for (std::int64_t l = 0; l < first_.length(); ++l) left.push_back(element(i, l));
      const std::string wrong = wrong_element(i, 0, second_[i], left, right, wide(beta_), before[i]);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  const Entry& entry_;
  Random random_;
  Computed computed_;
  Arguments x_;
  T alpha_, beta_;
  Matrix<T> a_;
  StridedVector<T> first_, second_;  // x and y
  float added_ = 0;                  // by sdsdot
  Result result_ = {};               // of dot
};

}  // namespace kintsugi::test
