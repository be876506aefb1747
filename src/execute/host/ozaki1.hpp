// Ozaki scheme I on any engine of the host: Algorithms 1 to 3 of dgemm-tc (Recombination::ozaki1).
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/memory.hpp"
#include "base/view.hpp"
#include "execute/report.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Arguments of the product of one batch item.
template <class T>
struct Ozaki1Task {
  const Plan& plan;
  const Candidate& candidate;
  const Program& program;  // adapted to the ranges
  const Blocking& blocking;
  OperandView<T> a;  // vectors x k
  OperandView<T> b;
  std::span<const VectorRange> rows;
  std::span<const VectorRange> columns;
  T alpha;
  T beta;
  MatrixView<T> c;
};

// Fails with contract_unreachable if an operand needs more slices than allowed. C is not read or written.
template <class T>
void check_ozaki1(const Ozaki1Task<T>& task, Workspace workspace);

// Computes C and adds the counts and times of the product to `counts`.
template <class T>
void multiply_by_ozaki1(const Ozaki1Task<T>& task, Workspace workspace, Ozaki1Counts& counts);

}  // namespace kintsugi::core
