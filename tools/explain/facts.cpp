#include "explain/facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kintsugi::tools {

namespace {

struct VectorFacts {
  int largest_exponent = std::numeric_limits<int>::min();
  int smallest_exponent = std::numeric_limits<int>::max();
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;

  bool has_finite_nonzero() const { return largest_exponent >= smallest_exponent; }
  int dynamic_range() const { return has_finite_nonzero() ? largest_exponent - smallest_exponent : 0; }
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
      facts.largest_exponent = std::max(facts.largest_exponent, exponent);
      facts.smallest_exponent = std::min(facts.smallest_exponent, exponent);
    }
  }
  return facts;
}

// Returns the lower median.
int median_of(std::vector<int> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
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
  std::vector<int> dynamic_ranges;
  for (const VectorFacts& vector : all) {
    const auto v = std::ssize(dynamic_ranges);
    dynamic_ranges.push_back(vector.dynamic_range());
    facts.zeros += vector.zeros;
    facts.nans += vector.nans;
    facts.infinities += vector.infinities;
    if (vector.dynamic_range() > facts.widest_dynamic_range) facts.widest_vector = v;
    facts.widest_dynamic_range = std::max(facts.widest_dynamic_range, vector.dynamic_range());
    if (!vector.has_finite_nonzero()) continue;
    const int largest = vector.largest_exponent;
    const int smallest = vector.smallest_exponent;
    if (!facts.largest_exponent || largest > *facts.largest_exponent) facts.largest_vector = v;
    facts.largest_exponent = std::max(facts.largest_exponent.value_or(largest), largest);
    facts.smallest_exponent = std::min(facts.smallest_exponent.value_or(smallest), smallest);
  }
  facts.median_dynamic_range = median_of(std::move(dynamic_ranges));
  return facts;
}

template OperandFacts operand_facts(core::MatrixView<const float>);
template OperandFacts operand_facts(core::MatrixView<const double>);

Json facts_document(const OperandFacts& facts) {
  return {{"vectors", facts.vectors},
          {"length", facts.length},
          {"largest_exponent", facts.largest_exponent ? Json(*facts.largest_exponent) : Json()},
          {"smallest_exponent", facts.smallest_exponent ? Json(*facts.smallest_exponent) : Json()},
          {"widest_span", facts.widest_dynamic_range},
          {"median_span", facts.median_dynamic_range},
          {"zeros", facts.zeros},
          {"nans", facts.nans},
          {"infinities", facts.infinities}};
}

}  // namespace kintsugi::tools
