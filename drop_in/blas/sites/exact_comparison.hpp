// Compares calls of a site with exact ones on the same operands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "blas/call.hpp"
#include "blas/next_blas/next.hpp"

namespace kintsugi::blas {

// A call whose error is measured. Made before the call, it keeps a copy of C as the call reads it.
class ExactComparison {
 public:
  // Returns a comparison if the sites file asks for errors and this call of the site is to be measured;
  // nullopt else, and for trsm, which has no exact counterpart. The call must outlive the comparison.
  static std::optional<ExactComparison> begin(const Symbol& symbol, const Call& call) noexcept;

  // Computes the call exactly in the copy of C, and records the error of the caller's C. Must be called after
  // the call, while a CallUnderWay exists. Records nothing if the exact call cannot be computed.
  void finish() noexcept;

 private:
  ExactComparison(const Symbol& symbol, const Call& call, std::int64_t number);
  bool compute_exactly();

  const Symbol* symbol_;
  const Call* call_;
  std::int64_t number_;  // of the call at its site
  std::vector<char> c_;  // lines of C without gaps
};

}  // namespace kintsugi::blas
