// Programs on which MixPert (LCTES 2024) was judged, at sizes that a CPU can run.
#pragma once

#include "reproduce/programs/matrix.hpp"

namespace kintsugi::tools::programs {

struct Site {
  std::string name;
  std::vector<std::size_t> predecessors;  // sites whose results this one reads
};

// Y = tanh(tanh(X W1) W2) W3 with n x n matrices. Elements of X have the distribution, those of the weights
// too, scaled so that layers neither grow nor shrink symmetric data.
class Perceptron {
 public:
  static const std::vector<Site>& sites();
  Perceptron(std::int64_t n, const std::string& distribution);
  Matrix run(Products& products) const;
  // Returns the multiplications of each site.
  std::vector<double> multiplications() const;

 private:
  std::int64_t n_;
  std::vector<Matrix> factors_;  // X, W1, W2, W3
};

// A = L L^T, right-looking by block columns with one of look-ahead; A = M M^T / n + I, the elements of M have
// the distribution. Sites are those of apps/mixpert and apps/blocked_cholesky.cpp.
class Cholesky {
 public:
  static const std::vector<Site>& sites();
  Cholesky(std::int64_t n, const std::string& distribution);
  Matrix run(Products& products) const;
  std::vector<double> multiplications() const;

 private:
  std::int64_t n_;
  Matrix a_;
};

// Solves A x = b, A diagonally dominant, by block LU in FP32, whose trailing update is the one call site, and
// GMRES in FP64 until the residual falls no more. Returns HPL-AI's scaled residual
// |A x - b| / (eps (|A| |x| + |b|) n) in the maximum norm; a result below 16 is valid.
double hpl_ai_residual(std::int64_t n, const std::string& distribution, Products& products);

}  // namespace kintsugi::tools::programs
