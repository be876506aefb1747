// A perceptron of three layers in FP32, Y = tanh(tanh(X W1) W2) W3: three call sites of GEMM. The result, Y,
// is checked in FP64.
#include <exception>

#include "common.hpp"

namespace {

using apps::Matrix;

// Half precision gives about 1e-3; beyond this a result is wrong whatever the precision.
constexpr double largest_error = 0.1;

void activate(Matrix& values) {
  for (float& value : values.values) value = std::tanh(value);
}

// The same product three times, in functions of their own.
APPS_CALL_SITE void first_layer(const Matrix& x, const Matrix& w, Matrix& y) {
  const float one = 1, zero = 0;
  sgemm_("N", "N", &y.rows, &y.columns, &x.columns, &one, x.at(0, 0), &x.rows, w.at(0, 0), &w.rows, &zero,
         y.at(0, 0), &y.rows);
  activate(y);
}

APPS_CALL_SITE void second_layer(const Matrix& x, const Matrix& w, Matrix& y) {
  const float one = 1, zero = 0;
  sgemm_("N", "N", &y.rows, &y.columns, &x.columns, &one, x.at(0, 0), &x.rows, w.at(0, 0), &w.rows, &zero,
         y.at(0, 0), &y.rows);
  activate(y);
  asm volatile("" ::: "memory");  // else the compiler makes one function of the two
}

APPS_CALL_SITE void last_layer(const Matrix& x, const Matrix& w, Matrix& y) {
  const float one = 1, zero = 0;
  sgemm_("N", "N", &y.rows, &y.columns, &x.columns, &one, x.at(0, 0), &x.rows, w.at(0, 0), &w.rows, &zero,
         y.at(0, 0), &y.rows);
  asm volatile("");  // no tail call, which would return to another function
}

// The same in FP64, one row of X at a time.
std::vector<double> layer(const std::vector<double>& x, const Matrix& w, bool activates) {
  std::vector<double> y(static_cast<std::size_t>(w.columns));
  for (int j = 0; j < w.columns; ++j) {
    double sum = 0;
    for (int p = 0; p < w.rows; ++p) sum += x[static_cast<std::size_t>(p)] * w(p, j);
    y[static_cast<std::size_t>(j)] = activates ? std::tanh(sum) : sum;
  }
  return y;
}

double error_of(const Matrix& x, const Matrix& w1, const Matrix& w2, const Matrix& w3, const Matrix& y) {
  apps::RelativeError error;
  for (int i = 0; i < x.rows; ++i) {
    std::vector<double> row(static_cast<std::size_t>(x.columns));
    for (int p = 0; p < x.columns; ++p) row[static_cast<std::size_t>(p)] = x(i, p);
    const std::vector<double> exact = layer(layer(layer(row, w1, true), w2, true), w3, false);
    for (int j = 0; j < y.columns; ++j) error.add(y(i, j), exact[static_cast<std::size_t>(j)]);
  }
  return error.value();
}

int run(int count, char** words) {
  if (count != 5) throw std::invalid_argument("usage: perceptron SAMPLES INPUTS HIDDEN Y.npy");
  const int samples = apps::size_of_text(words[1], "SAMPLES"),
            inputs = apps::size_of_text(words[2], "INPUTS");
  const int hidden = apps::size_of_text(words[3], "HIDDEN"), outputs = inputs;
  std::mt19937_64 random(apps::seed());
  const Matrix x = apps::random_matrix(samples, inputs, random);
  const Matrix w1 = apps::weights(inputs, hidden, random), w2 = apps::weights(hidden, hidden, random);
  const Matrix w3 = apps::weights(hidden, outputs, random);
  Matrix h1(samples, hidden), h2(samples, hidden), y(samples, outputs);
  first_layer(x, w1, h1);
  second_layer(h1, w2, h2);
  last_layer(h2, w3, y);
  apps::write_npy(words[4], y);
  return apps::judge("|Y - exact| / |exact|", error_of(x, w1, w2, w3, y), largest_error);
}

}  // namespace

int main(int count, char** words) try { return run(count, words); } catch (const std::exception& error) {
  std::fprintf(stderr, "perceptron: %s\n", error.what());
  return 2;
}
