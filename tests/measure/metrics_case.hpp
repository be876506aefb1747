// Products with measured errors, and the fixture of their tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/measure/special_numbers.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::measure {

using core::MatrixView;

// A product with all of its matrices, row-major.
template <class T>
struct Case {
  std::int64_t m, n, k;
  std::vector<T> a, b, c0, c, native;
  double alpha = 1;
  double beta = 0;

  Case(std::int64_t rows, std::int64_t columns, std::int64_t inner)
      : m(rows), n(columns), k(inner), a(m * k), b(k * n), c0(m * n), c(m * n), native(m * n) {}

  static MatrixView<const T> view(const std::vector<T>& x, std::int64_t rows, std::int64_t columns) {
    return {x.data(), rows, columns, columns, 1};
  }
  Product<T> product() const { return {view(a, m, k), view(b, k, n), alpha, beta, view(c0, m, n)}; }
  ErrorReport check(const CheckOptions& options = {}, bool with_native = false) const {
    return measure_errors<T>(product(), view(c, m, n),
                             with_native ? view(native, m, n) : MatrixView<const T>{}, options);
  }

  // Computes C in T, term by term.
  void compute() {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
        c[i * n + j] = static_cast<T>(alpha) * sum + static_cast<T>(beta) * c0[i * n + j];
      }
    }
  }

  static Case random(std::int64_t rows, std::int64_t columns, std::int64_t inner, const char* distribution,
                     std::uint64_t seed) {
    Case result(rows, columns, inner);
    const Distribution values = parse_distribution(distribution);
    fill<T>(values, Side::a, seed, {result.a.data(), rows, inner, inner, 1});
    fill<T>(values, Side::b, seed, {result.b.data(), inner, columns, columns, 1});
    fill<T>(parse_distribution("uniform"), Side::a, seed + 77, {result.c0.data(), rows, columns, columns, 1});
    return result;
  }
};

template <class T>
class Metrics : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Metrics, Types);

}  // namespace kintsugi::measure
