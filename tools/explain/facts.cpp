#include "explain/facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kintsugi::tools {

namespace {

struct VectorFacts {
  int largest = std::numeric_limits<int>::min();
  int smallest = std::numeric_limits<int>::max();
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;

  bool has_finite_nonzero() const { return largest >= smallest; }
  int span() const { return has_finite_nonzero() ? largest - smallest : 0; }
};

template <class T>
VectorFacts facts_of_vector(core::MatrixView<const T> vectors, std::int64_t v) {
  VectorFacts facts;
  for (std::int64_t l = 0; l < vectors.columns; ++l) {
    const T x = vectors(v, l);
    if (std::isnan(x)) {
      ++facts.nans;
    } else if (std::isinf(x)) {
      ++facts.infinities;
    } else if (x == T(0)) {
      ++facts.zeros;
    } else {
      const int exponent = std::ilogb(x);
      facts.largest = std::max(facts.largest, exponent);
      facts.smallest = std::min(facts.smallest, exponent);
    }
  }
  return facts;
}

int median_of(std::vector<int> spans) {
  const auto middle = spans.begin() + (std::ssize(spans) - 1) / 2;
  std::nth_element(spans.begin(), middle, spans.end());
  return *middle;
}

}  // namespace

template <class T>
OperandFacts operand_facts(core::MatrixView<const T> vectors) {
  std::vector<VectorFacts> all(static_cast<std::size_t>(vectors.rows));
#pragma omp parallel for schedule(static)
  for (std::int64_t v = 0; v < vectors.rows; ++v)
    all[static_cast<std::size_t>(v)] = facts_of_vector(vectors, v);
  OperandFacts facts;
  facts.vectors = vectors.rows;
  facts.length = vectors.columns;
  std::vector<int> spans;
  for (const VectorFacts& vector : all) {
    const auto v = std::ssize(spans);
    spans.push_back(vector.span());
    facts.zeros += vector.zeros;
    facts.nans += vector.nans;
    facts.infinities += vector.infinities;
    if (vector.span() > facts.widest_span) facts.widest_vector = v;
    facts.widest_span = std::max(facts.widest_span, vector.span());
    if (!vector.has_finite_nonzero()) continue;
    if (!facts.largest || vector.largest > *facts.largest) facts.largest_vector = v;
    facts.largest = std::max(facts.largest.value_or(vector.largest), vector.largest);
    facts.smallest = std::min(facts.smallest.value_or(vector.smallest), vector.smallest);
  }
  facts.median_span = median_of(std::move(spans));
  return facts;
}

template OperandFacts operand_facts(core::MatrixView<const float>);
template OperandFacts operand_facts(core::MatrixView<const double>);

Json facts_document(const OperandFacts& facts) {
  return {{"vectors", facts.vectors},
          {"length", facts.length},
          {"largest_exponent", facts.largest ? Json(*facts.largest) : Json()},
          {"smallest_exponent", facts.smallest ? Json(*facts.smallest) : Json()},
          {"widest_span", facts.widest_span},
          {"median_span", facts.median_span},
          {"zeros", facts.zeros},
          {"nans", facts.nans},
          {"infinities", facts.infinities}};
}

}  // namespace kintsugi::tools
