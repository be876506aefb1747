// Programs on which MixPert (LCTES 2024) was judged, at sizes that a CPU can run.
#pragma once

#include "lab/reproduce/programs/matrix.hpp"

namespace kintsugi::tools::programs {

struct Site {
  std::string name;
  std::vector<std::size_t> predecessors;  // sites whose results this site reads
};

// Y = tanh(tanh(X W1) W2) W3 with n x n matrices. X and the weights have the distribution. The weights are
// scaled so that layers neither grow nor shrink symmetric data.
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

// Factorizes A = L L^T, right-looking by block columns, with look-ahead of one block column. A = M M^T / n +
// I, where M has the distribution. The sites are those of lab/apps/mixpert and lab/apps/blocked_cholesky.cpp.
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

// Solves A x = b with a diagonally dominant A: by block LU in FP32, then GMRES in FP64 until the residual no
// longer decreases. The trailing update of LU is the only call site. Returns HPL-AI's scaled residual |A x -
// b| / (eps (|A| |x| + |b|) n) in the maximum norm. A result below 16 is valid.
double hpl_ai_residual(std::int64_t n, const std::string& distribution, Products& products);

}  // namespace kintsugi::tools::programs
