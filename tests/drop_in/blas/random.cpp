// Random products by every exported name against the naive loop: shapes, leading dimensions, transposes,
// scalars, special values, and what must not be written.
#include "tests/drop_in/blas/random.hpp"

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/oracle.hpp"

namespace kintsugi::test {

namespace {

using Random = std::mt19937_64;

template <class Value>
Value one_of(Random& random, std::initializer_list<Value> values) {
  return values.begin()[random() % values.size()];
}

enum class Distribution { uniform, wide, integers, subnormal };

template <class Real>
Real draw_real(Random& random, Distribution distribution) {
  const Real uniform = std::uniform_real_distribution<Real>(-1, 1)(random);
  switch (distribution) {
    case Distribution::uniform: return uniform;
    case Distribution::wide: return std::ldexp(uniform, static_cast<int>(random() % 60) - 30);
    case Distribution::integers: return static_cast<Real>(static_cast<int>(random() % 9) - 4);
    case Distribution::subnormal:
      return random() % 2 == 0 ? uniform * std::numeric_limits<Real>::min() : uniform;
  }
  return 0;
}

template <class T>
T draw(Random& random, Distribution distribution) {
  using Real = typename Parts<T>::Real;
  if constexpr (Parts<T>::is_complex) {
    const Real real = draw_real<Real>(random, distribution);
    return T(real, draw_real<Real>(random, distribution));
  } else {
    return draw_real<Real>(random, distribution);
  }
}

template <class T>
T special(Random& random) {
  using Limits = std::numeric_limits<typename Parts<T>::Real>;
  return T(one_of(random, {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}));
}

// A matrix in a buffer that is filled with a byte pattern outside the elements.
template <class T>
class Matrix {
 public:
  Matrix(Random& random, std::int64_t rows, std::int64_t columns, bool row_major)
      : rows_(rows), columns_(columns), row_major_(row_major) {
    ld_ = std::max<std::int64_t>(row_major ? columns : rows, 1) + one_of(random, {0, 0, 1, 3, 8});
    buffer_.resize(static_cast<std::size_t>(ld_ * std::max<std::int64_t>(row_major ? rows : columns, 1)) + 4);
    std::memset(static_cast<void*>(buffer_.data()), 0xa5, buffer_.size() * sizeof(T));
  }

  T& at(std::int64_t i, std::int64_t j) {
    return buffer_[static_cast<std::size_t>(row_major_ ? i * ld_ + j : i + j * ld_)];
  }

  void fill(Random& random, Distribution distribution, int specials) {
    for (std::int64_t j = 0; j < columns_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i) at(i, j) = draw<T>(random, distribution);
    if (rows_ == 0 || columns_ == 0) return;
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    for (int s = 0; s < specials; ++s) at(below(rows_), below(columns_)) = special<T>(random);
  }

  void fill_with_nan() {
    for (std::int64_t j = 0; j < columns_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i)
        at(i, j) = T(std::numeric_limits<typename Parts<T>::Real>::quiet_NaN());
  }

  bool has_bits_of(const Matrix& other) const {
    return std::memcmp(buffer_.data(), other.buffer_.data(), buffer_.size() * sizeof(T)) == 0;
  }

  T* data() { return buffer_.data(); }
  std::int64_t ld() const { return ld_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }

 private:
  std::int64_t rows_, columns_, ld_ = 1;
  bool row_major_;
  std::vector<T> buffer_;
};

template <class T>
T draw_scalar(Random& random) {
  const int kind = static_cast<int>(random() % 6);
  if (kind == 0) return T(0);
  if (kind <= 2) return T(1);
  if (kind == 3) return T(-1);
  return draw<T>(random, Distribution::uniform);
}

struct Shape {
  std::int64_t m, n, k;
};

Shape draw_shape(Random& random) {
  const auto side = [&] {
    return one_of<std::int64_t>(random, {0, 1, 1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 47});
  };
  const auto length = [&] {
    return random() % 8 == 0 ? one_of<std::int64_t>(random, {64, 65, 127, 200}) : side();
  };
  return {side(), side(), length()};
}

// One product: drawn, computed by a name, compared.
template <class T>
class RandomCase {
 public:
  RandomCase(const Entry& entry, std::uint64_t seed, bool forwarded)
      : entry_(entry), random_(seed), row_major_(entry.is_cblas && random_() % 2 == 0),
        shape_(draw_shape(random_)), op_a_(one_of(random_, {'N', 'N', 'T', 'C'})),
        op_b_(one_of(random_, {'N', 'N', 'T', 'C'})),
        a_(random_, op_a_ == 'N' ? shape_.m : shape_.k, op_a_ == 'N' ? shape_.k : shape_.m, row_major_),
        b_(random_, op_b_ == 'N' ? shape_.k : shape_.n, op_b_ == 'N' ? shape_.n : shape_.k, row_major_),
        c_(random_, shape_.m, shape_.n, row_major_), alpha_(draw_scalar<T>(random_)),
        beta_(draw_scalar<T>(random_)) {
    const auto distribution =
        one_of(random_, {Distribution::uniform, Distribution::uniform, Distribution::wide,
                         Distribution::integers, Distribution::subnormal});
    int specials = random_() % 6 == 0 ? 1 + static_cast<int>(random_() % 2) : 0;
    if (forwarded && alpha_ == T(0)) specials = 0;
    a_.fill(random_, distribution, specials);
    b_.fill(random_, distribution, random_() % 2 == 0 ? specials : 0);
    c_.fill(random_, distribution, 0);
    if (beta_ == T(0)) c_.fill_with_nan();
  }

  // Describes the failure; "" if there is none.
  std::string run() {
    const Matrix<T> a = a_, b = b_;
    Matrix<T> before = c_;
    entry_.call({.row_major = row_major_,
                 .op_a = op_a_,
                 .op_b = op_b_,
                 .m = shape_.m,
                 .n = shape_.n,
                 .k = shape_.k,
                 .alpha = &alpha_,
                 .a = a_.data(),
                 .lda = a_.ld(),
                 .b = b_.data(),
                 .ldb = b_.ld(),
                 .beta = &beta_,
                 .c = c_.data(),
                 .ldc = c_.ld()});
    if (!a_.has_bits_of(a) || !b_.has_bits_of(b)) return "A or B was written";
    std::string wrong = first_wrong_element(before);
    if (!wrong.empty()) return wrong;
    for (std::int64_t j = 0; j < shape_.n; ++j)
      for (std::int64_t i = 0; i < shape_.m; ++i) before.at(i, j) = c_.at(i, j);
    return c_.has_bits_of(before) ? "" : "an element outside C was written";
  }

  std::string text() const {
    return std::string(row_major_ ? "row-major " : "column-major ") + op_a_ + op_b_ +
           " m = " + std::to_string(shape_.m) + " n = " + std::to_string(shape_.n) +
           " k = " + std::to_string(shape_.k);
  }

 private:
  T element(Matrix<T>& matrix, char op, std::int64_t i, std::int64_t j) {
    const T value = op == 'N' ? matrix.at(i, j) : matrix.at(j, i);
    if constexpr (Parts<T>::is_complex) return op == 'C' ? std::conj(value) : value;
    return value;
  }

  std::string first_wrong_element(Matrix<T>& before) {
    for (std::int64_t j = 0; j < shape_.n; ++j) {
      for (std::int64_t i = 0; i < shape_.m; ++i) {
        ElementOracle<T> oracle;
        for (std::int64_t l = 0; l < shape_.k; ++l)
          oracle.add(element(a_, op_a_, i, l), element(b_, op_b_, l, j));
        const Expected expected = oracle.result(alpha_, beta_, before.at(i, j));
        if (!meets(c_.at(i, j), expected)) return difference(i, j, expected);
      }
    }
    return "";
  }

  std::string difference(std::int64_t i, std::int64_t j, const Expected& expected) {
    char text[200];
    const Wide value = wide(c_.at(i, j));
    std::snprintf(text, sizeof text, "C(%d, %d) = %.17Lg %+.17Lgi, expected %.17Lg %+.17Lgi within %.3Lg",
                  static_cast<int>(i), static_cast<int>(j), value.real(), value.imag(), expected.value.real(),
                  expected.value.imag(), expected.allowed);
    return text;
  }

  const Entry& entry_;
  Random random_;
  bool row_major_;
  Shape shape_;
  char op_a_, op_b_;
  Matrix<T> a_, b_, c_;
  T alpha_, beta_;
};

template <class T>
bool holds(const Entry& entry, std::uint64_t seed, std::int64_t number, bool forwarded) {
  RandomCase<T> one(entry, seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number), forwarded);
  const std::string wrong = one.run();
  if (wrong.empty()) return true;
  std::printf("%s %s: %s; repeat with --seed %llu --first %lld --cases 1\n", entry.name, one.text().c_str(),
              wrong.c_str(), static_cast<unsigned long long>(seed), static_cast<long long>(number));
  return false;
}

bool holds_of_type(const Entry& entry, std::uint64_t seed, std::int64_t number, bool forwarded) {
  switch (entry.type) {
    case 's': return holds<float>(entry, seed, number, forwarded);
    case 'd': return holds<double>(entry, seed, number, forwarded);
    case 'c': return holds<std::complex<float>>(entry, seed, number, forwarded);
    default: return holds<std::complex<double>>(entry, seed, number, forwarded);
  }
}

}  // namespace

int check_random(std::uint64_t seed, std::int64_t first, std::int64_t cases, bool forwarded) {
  int failures = 0;
  for (std::int64_t number = first; number < first + cases; ++number) {
    const Entry& entry = entries()[static_cast<std::size_t>(number) % entries().size()];
    if (!holds_of_type(entry, seed, number, forwarded)) ++failures;
  }
  std::printf("%lld random products, %d failures\n", static_cast<long long>(cases), failures);
  return failures;
}

}  // namespace kintsugi::test
