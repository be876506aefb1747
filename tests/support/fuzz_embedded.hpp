// One batch item of a FuzzCase as a product of real matrices, and the precision of their elements.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/support/fuzz_data.hpp"

namespace kintsugi::test::fuzz {

template <class Part>
using WordOf = std::conditional_t<std::is_same_v<Part, core::DoubleDouble>, double, Part>;

// Unit roundoff, and below it the smallest positive number, of a part's type.
template <class Part>
constexpr double unit_of() {
  return std::is_same_v<Part, core::DoubleDouble> ? 0x1p-106
         : std::is_same_v<Part, float>            ? 0x1p-24
                                                  : 0x1p-53;
}
template <class Part>
constexpr double smallest_of() {
  return std::numeric_limits<WordOf<Part>>::denorm_min();
}

// One batch item's operands as real matrices: a complex product is a real one of twice the inner length and
// twice the columns, re c_ij = sum (re a, im a) (re b, -im b), im c_ij = sum (re a, im a) (im b, re b).
template <class T>
struct Embedded {
  using Part = PartOf<T>;
  static constexpr std::int64_t parts = is_complex_element<T> ? 2 : 1;

  Embedded(const FuzzData<T>& data, std::int64_t item)
      : k(data.test().k * parts), m(data.test().m), n(data.test().n * parts), a(size(m, k)), b(size(n, k)),
        c(size(m, n)) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t p = 0; p < data.test().k; ++p) put_a(data.a(item, i, p), i, p);
    }
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      for (std::int64_t p = 0; p < data.test().k; ++p) put_b(data.b(item, p, j), j, p);
    }
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < data.test().n; ++j) {
        const T old = data.c(data.c().bytes.data(), item, i, j);
        for (std::int64_t part = 0; part < parts; ++part)
          c[index(i, j * parts + part, n)] = part_of(old, part);
      }
    }
  }

  static Part part_of(const T& x, std::int64_t part) {
    if constexpr (parts == 2) {
      return part == 0 ? x.real() : x.imag();
    } else {
      return x;
    }
  }
  static std::size_t index(std::int64_t v, std::int64_t p, std::int64_t length) {
    return static_cast<std::size_t>(v * length + p);
  }
  const Part* row(std::int64_t i) const { return a.data() + i * k; }
  const Part* column(std::int64_t j) const { return b.data() + j * k; }
  const Part& old(std::int64_t i, std::int64_t j) const { return c[index(i, j, n)]; }

  std::int64_t k, m, n;       // of the real product
  std::vector<Part> a, b, c;  // rows of op(A), columns of op(B), rows of C before, each contiguous

 private:
  static std::size_t size(std::int64_t x, std::int64_t y) { return static_cast<std::size_t>(x * y); }
  void put_a(const T& x, std::int64_t i, std::int64_t p) {
    for (std::int64_t part = 0; part < parts; ++part) a[index(i, p * parts + part, k)] = part_of(x, part);
  }
  void put_b(const T& y, std::int64_t j, std::int64_t p) {
    if constexpr (parts == 2) {
      b[index(2 * j, 2 * p, k)] = y.real(), b[index(2 * j, 2 * p + 1, k)] = -y.imag();
      b[index(2 * j + 1, 2 * p, k)] = y.imag(), b[index(2 * j + 1, 2 * p + 1, k)] = y.real();
    } else {
      b[index(j, p, k)] = y;
    }
  }
};

}  // namespace kintsugi::test::fuzz
