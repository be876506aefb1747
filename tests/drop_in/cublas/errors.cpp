#include "tests/drop_in/cublas/errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "tests/drop_in/cublas/program.hpp"

namespace {

using kintsugi::test::BlasHandle;

// C := alpha A B + beta C, column-major, with gaps between the columns of C.
struct Product {
  int m, n, k, ldc;
  float alpha = 1.5F, beta = 0.75F;
  std::vector<float> a, b, c;
};

Product random_product(std::mt19937_64& random) {
  std::uniform_int_distribution<int> size(1, 30);
  std::uniform_real_distribution<float> element(-1, 1);
  Product product{
      .m = size(random), .n = size(random), .k = size(random), .ldc = 0, .a = {}, .b = {}, .c = {}};
  product.ldc = product.m + 3;
  const auto fill = [&](std::vector<float>& matrix, int rows, int columns) {
    matrix.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (float& value : matrix) value = element(random);
  };
  fill(product.a, product.m, product.k);
  fill(product.b, product.k, product.n);
  fill(product.c, product.ldc, product.n);
  return product;
}

struct Squares {
  double difference = 0, exact = 0;
};

// Adds the squares of a product. `before`: C before the call, from which the exact result is computed.
void add_squares(Squares& all, const Product& product, const std::vector<float>& before) {
  const auto at = [](const std::vector<float>& matrix, int row, int column, int ld) {
    return matrix[static_cast<std::size_t>(row) +
                  static_cast<std::size_t>(column) * static_cast<std::size_t>(ld)];
  };
  for (int j = 0; j < product.n; ++j) {
    for (int i = 0; i < product.m; ++i) {
      long double sum = 0;
      for (int l = 0; l < product.k; ++l)
        sum += static_cast<long double>(at(product.a, i, l, product.m)) * at(product.b, l, j, product.k);
      const auto exact =
          static_cast<float>(static_cast<long double>(product.alpha) * sum +
                             static_cast<long double>(product.beta) * at(before, i, j, product.ldc));
      const double difference =
          static_cast<double>(at(product.c, i, j, product.ldc)) - static_cast<double>(exact);
      all.difference += difference * difference;
      all.exact += static_cast<double>(exact) * static_cast<double>(exact);
    }
  }
}

}  // namespace

// Functions with C linkage, since names of sites have the mangled names of C++ functions.
extern "C" {

__attribute__((noinline)) int errors_wrapper(BlasHandle handle, Product* product) {
  const auto gemm = reinterpret_cast<int (*)(BlasHandle, int, int, int, int, int, const float*, const float*,
                                             int, const float*, int, const float*, float*, int)>(
      kintsugi::test::function_of("cublasSgemm_v2"));
  const int status =
      gemm(handle, 0, 0, product->m, product->n, product->k, &product->alpha, product->a.data(), product->m,
           product->b.data(), product->k, &product->beta, product->c.data(), product->ldc);
  __asm__ volatile("");  // no tail call, which would leave no frame
  return status;
}
__attribute__((noinline)) int errors_first(BlasHandle handle, Product* product) {
  const int status = errors_wrapper(handle, product);
  __asm__ volatile("");
  return status;
}
__attribute__((noinline)) int errors_second(BlasHandle handle, Product* product) {
  const int status = errors_wrapper(handle, product);
  __asm__ volatile("");
  return status;
}
}

namespace kintsugi::test {

int print_errors() {
  make_context_current();
  const ProgramHandle handle;
  std::mt19937_64 random(1);
  const std::pair<const char*, int (*)(BlasHandle, Product*)> callers[] = {{"errors_first", errors_first},
                                                                           {"errors_second", errors_second}};
  for (const auto& [name, caller] : callers) {
    Squares all;
    double largest = 0;
    for (int call = 0; call < 3; ++call) {
      Product product = random_product(random);
      const std::vector<float> before = product.c;
      if (caller(handle.get(), &product) != 0) return 1;
      Squares one;
      add_squares(one, product, before);
      all.difference += one.difference;
      all.exact += one.exact;
      largest = std::max(largest, std::sqrt(one.difference / one.exact));
    }
    std::printf("%s %.17g %.17g\n", name, std::sqrt(all.difference / all.exact), largest);
  }
  return 0;
}

}  // namespace kintsugi::test
