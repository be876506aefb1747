// Random matrices whose every byte is compared afterwards.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/drop_in/blas/oracle.hpp"

namespace kintsugi::test {

// Numbers of a fuzzer's bytes as long as there are some, else of a seed.
class Random {
 public:
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  explicit Random(std::uint64_t seed, std::span<const std::uint8_t> bytes = {})
      : generator_(seed), bytes_(bytes) {}

  result_type operator()() {
    if (bytes_.empty()) return generator_();
    result_type number = 0;
    const std::size_t count = std::min(bytes_.size(), sizeof number);
    std::memcpy(&number, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return number;
  }

 private:
  std::mt19937_64 generator_;
  std::span<const std::uint8_t> bytes_;
};

template <class Value>
Value one_of(Random& random, std::initializer_list<Value> values) {
  return values.begin()[random() % values.size()];
}

// Sides of random matrices are at most this. The fuzzer lowers it, since it is to make many calls.
inline std::int64_t largest_side = 200;

inline std::int64_t draw_side(Random& random, std::initializer_list<std::int64_t> sides) {
  return std::min(one_of(random, sides), largest_side);
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

inline Distribution draw_distribution(Random& random) {
  return one_of(random, {Distribution::uniform, Distribution::uniform, Distribution::wide,
                         Distribution::integers, Distribution::subnormal});
}

template <class T>
T special(Random& random) {
  using Limits = std::numeric_limits<typename Parts<T>::Real>;
  return T(one_of(random, {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}));
}

template <class T>
T not_a_number() {
  return T(std::numeric_limits<typename Parts<T>::Real>::quiet_NaN());
}

template <class T>
T draw_scalar(Random& random) {
  const int kind = static_cast<int>(random() % 6);
  if (kind == 0) return T(0);
  if (kind <= 2) return T(1);
  if (kind == 3) return T(-1);
  return draw<T>(random, Distribution::uniform);
}

inline std::int64_t draw_padding(Random& random) { return one_of<std::int64_t>(random, {0, 0, 1, 3, 8}); }

template <class T>
T conjugate(const T& value) {
  if constexpr (Parts<T>::is_complex) {
    return std::conj(value);
  } else {
    return value;
  }
}

// A matrix whose buffer has bytes of a pattern wherever no element lies.
template <class T>
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, bool row_major, std::int64_t padding)
      : rows_(rows), columns_(columns), row_major_(row_major) {
    ld_ = std::max<std::int64_t>(row_major ? columns : rows, 1) + padding;
    buffer_.resize(static_cast<std::size_t>(ld_ * std::max<std::int64_t>(row_major ? rows : columns, 1)) + 4);
    std::memset(static_cast<void*>(buffer_.data()), 0xa5, buffer_.size() * sizeof(T));
  }

  T& at(std::int64_t i, std::int64_t j) {
    return buffer_[static_cast<std::size_t>(row_major_ ? i * ld_ + j : i + j * ld_)];
  }
  const T& at(std::int64_t i, std::int64_t j) const { return const_cast<Matrix*>(this)->at(i, j); }

  // An element of op(matrix).
  T at(char op, std::int64_t i, std::int64_t j) const {
    const T& value = op == 'N' ? at(i, j) : at(j, i);
    return op == 'C' ? conjugate(value) : value;
  }

  // `specials` elements are NaN or infinite.
  void fill(Random& random, Distribution distribution, int specials) {
    for (std::int64_t j = 0; j < columns_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i) at(i, j) = draw<T>(random, distribution);
    place_special_values(random, specials);
  }

  void place_special_values(Random& random, int count) {
    if (rows_ == 0 || columns_ == 0) return;
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    for (int s = 0; s < count; ++s) {
      const std::int64_t row = below(rows_);
      at(row, below(columns_)) = special<T>(random);
    }
  }

  // Elements for which select(i, j) holds.
  template <class Select>
  void fill_with_nan(const Select& select) {
    for (std::int64_t j = 0; j < columns_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i)
        if (select(i, j)) at(i, j) = not_a_number<T>();
  }
  void fill_with_nan() {
    fill_with_nan([](std::int64_t, std::int64_t) { return true; });
  }

  bool has_bits_of(const Matrix& other) const {
    return std::memcmp(buffer_.data(), other.buffer_.data(), buffer_.size() * sizeof(T)) == 0;
  }

  // True if nothing but elements for which select(i, j) holds differs from `before`.
  template <class Select>
  bool differs_only(Matrix before, const Select& select) const {
    for (std::int64_t j = 0; j < columns_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i)
        if (select(i, j)) before.at(i, j) = at(i, j);
    return has_bits_of(before);
  }

  T* data() { return buffer_.data(); }
  std::vector<T>& buffer() { return buffer_; }
  std::int64_t ld() const { return ld_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }

 private:
  std::int64_t rows_, columns_, ld_ = 1;
  bool row_major_;
  std::vector<T> buffer_;
};

// "C(1, 2) = ..., expected ... within ...".
std::string difference(std::int64_t i, std::int64_t j, const Wide& value, const Expected& expected);

}  // namespace kintsugi::test
