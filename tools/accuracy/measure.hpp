// One cell of a sweep (shape, distribution, seed): its matrices, their exact product, rows of errors.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "accuracy/sweep.hpp"
#include "lab/metrics.hpp"

namespace kintsugi::tools {

struct CellKey {
  Shape shape;
  std::string distribution;
  std::uint64_t seed = 0;
};

// The identity of a row of the document.
Json row_key(const CellKey& cell, const Method& method);

// Fails where the library makes no plan for the method: found before anything is measured.
void require_plan(const Method& method, const Shape& shape);

class AccuracyCell {
 public:
  AccuracyCell(const CellKey& key, std::int64_t max_entries);

  // The row of the document (docs/schema/accuracy.schema.json). Throws LibraryError, contract_unreachable, where
  // the scheme refuses these operands.
  Json row(const Method& method);

 private:
  struct Result {
    Json plan;
    std::vector<float> c;  // row-major (m,n)
    double plan_seconds = 0;
    double seconds = 0;
    lab::ErrorReport errors;
    std::vector<lab::EntryError> entries;
  };

  core::MatrixView<const float> view_a() const {
    return {a_.data(), key_.shape.m, key_.shape.k, key_.shape.k, 1};
  }
  core::MatrixView<const float> view_b() const {
    return {b_.data(), key_.shape.k, key_.shape.n, key_.shape.n, 1};
  }
  core::MatrixView<const float> view_c(const std::vector<float>& c) const {
    return {c.data(), key_.shape.m, key_.shape.n, key_.shape.n, 1};
  }
  Result run(const Method& method) const;
  const Result* native(const std::string& engine);
  Json bound_document(const Result& result) const;

  CellKey key_;
  std::vector<float> a_;
  std::vector<float> b_;
  std::optional<lab::ExactReference<float>> exact_;
  std::map<std::string, std::optional<Result>> native_;  // by engine; nothing where it has none
};

}  // namespace kintsugi::tools
