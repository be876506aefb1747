#include <cmath>

#include "lab/reproduce/programs/programs.hpp"

namespace kintsugi::tools::programs {

const std::vector<Site>& Perceptron::sites() {
  static const std::vector<Site> all{{"first_layer", {}}, {"second_layer", {0}}, {"last_layer", {1}}};
  return all;
}

Perceptron::Perceptron(std::int64_t n, const std::string& distribution) : n_(n) {
  for (std::size_t i = 0; i <= sites().size(); ++i) {
    factors_.push_back(random_matrix(n, n, distribution, i + 1));
    if (i == 0) continue;
    const auto gain = static_cast<float>(std::sqrt(3.0 / static_cast<double>(n)));
    for (float& weight : factors_.back().values) weight *= gain;
  }
}

Matrix Perceptron::run(Products& products) const {
  Matrix hidden = factors_.front();
  for (std::size_t layer = 0; layer < sites().size(); ++layer) {
    hidden = products.multiply(sites()[layer].name, hidden, factors_[layer + 1]);
    if (layer + 1 == sites().size()) break;
    for (float& value : hidden.values) value = std::tanh(value);
  }
  return hidden;
}

std::vector<double> Perceptron::multiplications() const {
  return std::vector<double>(sites().size(), std::pow(static_cast<double>(n_), 3));
}

}  // namespace kintsugi::tools::programs
