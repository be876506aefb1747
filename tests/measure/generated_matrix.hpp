// Generated matrices, and the fixture of the tests of their distributions.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/measure/generators/generators.hpp"

namespace kintsugi::measure {

using core::MatrixView;

// op(A) or op(B), row-major.
template <class T>
struct Matrix {
  std::int64_t rows, columns;
  std::vector<T> values;

  Matrix(const std::string& text, Side side, std::uint64_t seed, std::int64_t row_count,
         std::int64_t column_count)
      : rows(row_count), columns(column_count), values(static_cast<std::size_t>(row_count * column_count)) {
    fill<T>(parse_distribution(text), side, seed, view());
  }
  MatrixView<T> view() { return {values.data(), rows, columns, columns, 1}; }
  T operator()(std::int64_t i, std::int64_t j) const { return values[i * columns + j]; }
};

template <class T>
class Generators : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Generators, Types);

}  // namespace kintsugi::measure
