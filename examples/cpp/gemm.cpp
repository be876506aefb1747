// The C++ door: one call, a plan that is looked at, an operand split once and used again, a batch, and an
// error that is caught. Exit status 0: everything was right; 1: something was not.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kintsugi/kintsugi.hpp"

namespace {

using kintsugi::Op;
using Matrix = std::vector<float>;

constexpr std::int64_t m = 96, n = 80, k = 300;

Matrix random_matrix(std::int64_t elements, std::uint32_t seed) {
  std::mt19937 generator(seed);
  Matrix matrix(static_cast<std::size_t>(elements));
  for (float& element : matrix) element = static_cast<float>(generator()) * 0x1p-31f - 1.0f;
  return matrix;
}

// Largest error of c = a * b (column-major, m x k times k x n) in units of (k + 8) 2^-24 |a||b|, the bound of
// the accuracy fp32.
double share_of_bound(const float* a, const float* b, const float* c) {
  double share = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = 0, magnitude = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double product = static_cast<double>(a[i + l * m]) * b[l + j * k];
        sum += product;
        magnitude += std::abs(product);
      }
      share =
          std::fmax(share, std::abs(c[i + j * m] - sum) / (static_cast<double>(k + 8) * 0x1p-24 * magnitude));
    }
  }
  return share;
}

bool all_right = true;

void require(bool right, const std::string& what) {
  std::printf("%-60s %s\n", what.c_str(), right ? "right" : "WRONG");
  all_right = all_right && right;
}

void one_call(const Matrix& a, const Matrix& b) {
  Matrix c(static_cast<std::size_t>(m * n));
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, c.data(), m, {.scheme = "fp16x3"});
  require(share_of_bound(a.data(), b.data(), c.data()) <= 1, "gemm by fp16x3 is within the bound of fp32");
}

// A is split once and multiplied with several B; the bits are those of the plain calls.
void prepared_operand(const Matrix& a) {
  const auto problem = kintsugi::Problem::dense<float>(Op::N, Op::N, m, n, k);
  const kintsugi::Plan plan(problem, {.scheme = "fp16x3"});
  std::printf("the plan: %s\n", plan.describe().c_str());
  std::printf("its workspace: %zu bytes\n", plan.workspace_size());
  const kintsugi::Prepared split_a = plan.prepare(kintsugi::Side::A, a.data());
  for (const std::uint32_t seed : {11u, 12u, 13u}) {
    const Matrix b = random_matrix(k * n, seed);
    Matrix direct(static_cast<std::size_t>(m * n)), reused(direct.size());
    plan.execute(1, a.data(), b.data(), 0, direct.data());
    plan.execute(1, split_a, b.data(), 0, reused.data());
    require(direct == reused, "prepared A gives the same bits, B number " + std::to_string(seed));
  }
}

// One A for every batch item: its stride is 0.
void batch(const Matrix& a) {
  constexpr std::int64_t count = 4;
  const Matrix b = random_matrix(count * k * n, 21);
  Matrix c(static_cast<std::size_t>(count * m * n));
  kintsugi::gemm_strided_batch(Op::N, Op::N, m, n, k, 1, a.data(), m, 0, b.data(), k, k * n, 0, c.data(), m,
                               m * n, count, {.scheme = "fp16x3"});
  for (std::int64_t t = 0; t < count; ++t) {
    require(share_of_bound(a.data(), b.data() + t * k * n, c.data() + t * m * n) <= 1,
            "element " + std::to_string(t) + " of the batch is within the bound");
  }
}

void an_error(const Matrix& a, const Matrix& b) {
  Matrix c(static_cast<std::size_t>(m * n), -1.0f);
  try {
    kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m - 1, b.data(), k, 0, c.data(), m);
    require(false, "a leading dimension that is too small is refused");
  } catch (const kintsugi::Error& error) {
    std::printf("caught: %s: %s\n", kintsugi::status_name(error.status()), error.what());
    require(error.status() == kintsugi::Status::invalid_argument && c == Matrix(c.size(), -1.0f),
            "a leading dimension that is too small is refused");
  }
}

}  // namespace

int main() {
  try {
    const Matrix a = random_matrix(m * k, 1), b = random_matrix(k * n, 2);
    one_call(a, b);
    prepared_operand(a);
    batch(a);
    an_error(a, b);
  } catch (const kintsugi::Error& error) {
    std::fprintf(stderr, "gemm: %s: %s\n", kintsugi::status_name(error.status()), error.what());
    return EXIT_FAILURE;
  }
  return all_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
