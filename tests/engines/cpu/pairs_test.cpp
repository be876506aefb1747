// Tests that every family of kernels for native double-double products has the bits of the sequential loop.
#include "engines/cpu/products.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "engines/pair_element.hpp"
#include "tests/support/gemm_case.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

struct Shape {
  std::int64_t m, n, k;
  bool rows_of_a, rows_of_b;  // A or B is stored by rows
};

MatrixView<DoubleDouble> dense(std::vector<DoubleDouble>& memory, std::int64_t rows, std::int64_t columns,
                               bool by_rows) {
  memory.assign(static_cast<std::size_t>(rows * columns), test::poison_of<DoubleDouble>());
  return {memory.data(), rows, columns, by_rows ? columns : 1, by_rows ? 1 : rows};
}

TEST(Pairs, EveryFamilyHasTheBitsOfTheSequentialLoop) {
  for (const Shape& shape :
       {Shape{1, 1, 1, false, false}, Shape{97, 95, 33, false, false}, Shape{96, 192, 64, true, false},
        Shape{7, 130, 31, false, true}, Shape{101, 3, 100, true, true}}) {
    std::vector<DoubleDouble> memory_a, memory_b, memory_c, memory_d;
    const auto a = dense(memory_a, shape.m, shape.k, shape.rows_of_a);
    const auto b = dense(memory_b, shape.k, shape.n, shape.rows_of_b);
    const auto distribution = measure::parse_distribution("phi:2");
    measure::fill(distribution, measure::Side::a, 3, a);
    measure::fill(distribution, measure::Side::b, 3, b);
    const auto expected = dense(memory_c, shape.m, shape.n, false);
    const auto task = [&](const MatrixView<DoubleDouble>& c) {
      return NativeProduct<DoubleDouble>{test::constant(a), test::constant(b), c, {0.5, 0x1p-60}, 0, 2};
    };
    sequential_pair_product(task(expected));
    for (const PairKernels* kernels : pair_families()) {
      const auto computed = dense(memory_d, shape.m, shape.n, true);
      multiply_pairs(task(computed), *kernels);
      for (std::int64_t j = 0; j < shape.n; ++j) {
        for (std::int64_t i = 0; i < shape.m; ++i)
          ASSERT_EQ(computed(i, j), expected(i, j)) << kernels->name << " at " << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace kintsugi::core
