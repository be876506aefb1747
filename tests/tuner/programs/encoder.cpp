// One layer of a transformer's encoder in FP32: eight call sites of GEMM. Between them are a softmax, layer
// norms and sums with the input, all of which write to matrices of their own.
#include <exception>

#include "lab/apps/common.hpp"

namespace {

using apps::Matrix;

Matrix softmax_of_rows(const Matrix& x, float scale) {
  Matrix y(x.rows, x.columns);
  for (int i = 0; i < x.rows; ++i) {
    float largest = x(i, 0) * scale, sum = 0;
    for (int j = 0; j < x.columns; ++j) largest = std::max(largest, x(i, j) * scale);
    for (int j = 0; j < x.columns; ++j) sum += y(i, j) = std::exp(x(i, j) * scale - largest);
    for (int j = 0; j < x.columns; ++j) y(i, j) /= sum;
  }
  return y;
}

// Layer norm of x + residual, row by row.
Matrix normalized_sum(const Matrix& x, const Matrix& residual) {
  Matrix y(x.rows, x.columns);
  const auto count = static_cast<float>(x.columns);
  for (int i = 0; i < x.rows; ++i) {
    float mean = 0, square = 0;
    for (int j = 0; j < x.columns; ++j) mean += x(i, j) + residual(i, j);
    mean /= count;
    for (int j = 0; j < x.columns; ++j) {
      y(i, j) = x(i, j) + residual(i, j) - mean;
      square += y(i, j) * y(i, j);
    }
    for (int j = 0; j < x.columns; ++j) y(i, j) /= std::sqrt(square / count + 1e-5F);
  }
  return y;
}

Matrix gelu(const Matrix& x) {
  Matrix y(x.rows, x.columns);
  for (std::size_t i = 0; i < x.values.size(); ++i)
    y.values[i] = 0.5F * x.values[i] * (1 + std::erf(x.values[i] * 0.70710678F));
  return y;
}

struct Weights {
  Matrix query, key, value, output, up, down;
};

Matrix encode(const Matrix& x, const Weights& w) {
  const int n = x.rows, width = x.columns, wide = w.up.columns;
  const float one = 1, zero = 0;
  Matrix query(n, width), key(n, width), value(n, width), scores(n, n), context(n, width),
      projected(n, width), up(n, wide), down(n, width);
  sgemm_("N", "N", &n, &width, &width, &one, x.at(0, 0), &n, w.query.at(0, 0), &width, &zero, query.at(0, 0),
         &n);
  sgemm_("N", "N", &n, &width, &width, &one, x.at(0, 0), &n, w.key.at(0, 0), &width, &zero, key.at(0, 0), &n);
  sgemm_("N", "N", &n, &width, &width, &one, x.at(0, 0), &n, w.value.at(0, 0), &width, &zero, value.at(0, 0),
         &n);
  sgemm_("N", "T", &n, &n, &width, &one, query.at(0, 0), &n, key.at(0, 0), &n, &zero, scores.at(0, 0), &n);
  const Matrix attention = softmax_of_rows(scores, 1 / std::sqrt(static_cast<float>(width)));
  sgemm_("N", "N", &n, &width, &n, &one, attention.at(0, 0), &n, value.at(0, 0), &n, &zero, context.at(0, 0),
         &n);
  sgemm_("N", "N", &n, &width, &width, &one, context.at(0, 0), &n, w.output.at(0, 0), &width, &zero,
         projected.at(0, 0), &n);
  const Matrix middle = normalized_sum(projected, x);
  sgemm_("N", "N", &n, &wide, &width, &one, middle.at(0, 0), &n, w.up.at(0, 0), &width, &zero, up.at(0, 0),
         &n);
  const Matrix activated = gelu(up);
  sgemm_("N", "N", &n, &width, &wide, &one, activated.at(0, 0), &n, w.down.at(0, 0), &wide, &zero,
         down.at(0, 0), &n);
  return normalized_sum(down, middle);
}

int run(int count, char** words) {
  if (count != 4) throw std::invalid_argument("usage: encoder TOKENS WIDTH Y.npy");
  const int tokens = apps::size_of_text(words[1], "TOKENS"), width = apps::size_of_text(words[2], "WIDTH");
  std::mt19937_64 random(apps::seed());
  const Matrix x = apps::random_matrix(tokens, width, random);
  const auto square = [&] { return apps::weights(width, width, random); };
  const Weights w{square(),
                  square(),
                  square(),
                  square(),
                  apps::weights(width, 2 * width, random),
                  apps::weights(2 * width, width, random)};
  apps::write_npy(words[3], encode(x, w));
  return 0;
}

}  // namespace

int main(int count, char** words) try { return run(count, words); } catch (const std::exception& error) {
  std::fprintf(stderr, "encoder: %s\n", error.what());
  return 2;
}
