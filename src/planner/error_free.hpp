// The Ozaki scheme: Algorithms 1 to 3 of dgemm-tc on any engine (Recombination::error_free).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/memory.hpp"
#include "base/view.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// What it did, summed over the blocks of C that had a number of slices of their own.
struct ErrorFreeCounts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;
  std::int64_t fast_blocks = 0;
  int least_slices = ErrorFree::most_slices;  // of A and B; vectors that have fewer are complete
  int most_products = 0;
  double split_a_seconds = 0;  // Algorithm 3 included
  double split_b_seconds = 0;
  double product_seconds = 0;
  double summation_seconds = 0;
};

// One batch entry.
template <class T>
struct ErrorFreeTask {
  const Plan& plan;
  const Candidate& candidate;
  const Program& program;  // fitted
  const Blocking& blocking;
  OperandView<T> a;  // vectors x k
  OperandView<T> b;
  std::span<const VectorRange> rows;
  std::span<const VectorRange> columns;
  T alpha;
  T beta;
  MatrixView<T> c;
};

// Bytes of workspace, exactly.
std::size_t error_free_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Fails with contract_unreachable where an operand asks for more slices than there may be. C is not touched.
template <class T>
void check_error_free(const ErrorFreeTask<T>& task, Workspace workspace);

template <class T>
void multiply_error_free(const ErrorFreeTask<T>& task, Workspace workspace, ErrorFreeCounts& counts);

}  // namespace kintsugi::core
