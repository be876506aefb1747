// Compares products with correctly rounded exact ones, element by element.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {

template <class T>
std::vector<T> exactly(GemmDataOf<T>& data) {
  std::vector<T> expected(static_cast<std::size_t>(data.test().m * data.test().n));
  measure::Product<T> product{constant(data.a()), constant(data.b()), data.alpha(), data.beta()};
  product.c0 = constant(data.c());
  measure::exact_product<T>(product,
                            MatrixView<T>{expected.data(), data.test().m, data.test().n, 1, data.test().m});
  return expected;
}

template <class T>
void expect_correctly_rounded(GemmCase test, const std::string& scheme) {
  test.scheme = scheme;
  GemmDataOf<T> data(test);
  const std::vector<T> expected = exactly(data);
  data.run_well();
  const std::vector<T> result = data.result();
  for (std::size_t e = 0; e < expected.size(); ++e)
    ASSERT_EQ(result[e], expected[e]) << scheme << " " << test.distribution << ", element " << e;
}

}  // namespace kintsugi::test
