// A sample of the product's elements. An element of C depends only on its row of A and its column of B.
// Therefore a few rows and columns are enough to compute some elements of C.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/facts.hpp"
#include "explain/plans.hpp"
#include "support.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

// Result of a scheme for the sample.
struct SchemeRun {
  std::string refusal;  // the library's message; "" if the scheme ran
  Json plan;            // kintsugi_plan_describe
  Json report;          // kintsugi_report
  measure::ErrorReport errors;
  std::vector<measure::ElementError> elements;
};

// Returns at most 16 evenly spread vectors, including the vectors with the largest exponent and the largest
// dynamic range. A scheme that fits itself to the largest magnitude then does the same as for all vectors.
std::vector<std::int64_t> sampled_vectors(const OperandFacts& facts);

template <class T>
class Sample {
 public:
  // Copies the sampled rows of `a`, op(A), and of `b`, op(B) transposed, and computes the exact elements.
  Sample(core::MatrixView<const T> a, core::MatrixView<const T> b, std::vector<std::int64_t> rows,
         std::vector<std::int64_t> columns);

  const std::vector<std::int64_t>& rows() const { return rows_; }
  const std::vector<std::int64_t>& columns() const { return columns_; }
  core::MatrixView<const T> a() const { return view(a_, rows_); }
  core::MatrixView<const T> b() const { return view(b_, columns_); }

  // Computes the elements by a scheme, or "native". Throws LibraryError for an unknown scheme.
  SchemeRun run(const std::string& scheme, const std::string& engine) const;

 private:
  core::MatrixView<const T> view(const std::vector<T>& values,
                                 const std::vector<std::int64_t>& vectors) const {
    return {values.data(), std::ssize(vectors), k_, k_, 1};
  }
  kintsugi_problem problem() const;

  std::int64_t k_;
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> columns_;
  std::vector<T> a_;
  std::vector<T> b_;
  std::optional<measure::ExactReference<T>> exact_;
};

extern template class Sample<float>;
extern template class Sample<double>;

}  // namespace kintsugi::tools
