// Steps of a plan on the host (planner/steps.hpp): their interpreter, and steps in files of their own.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/memory.hpp"
#include "base/view.hpp"
#include "execute/execute.hpp"
#include "execute/host/operand.hpp"
#include "execute/report.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "split/ranges.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// execute() for matrices in host memory and an engine of the host. Of each batch item, the steps of the
// selected candidate run. Precondition: no extent is 0, nor is alpha.
void execute_on_host(const Plan& plan, const Operands& operands, Report& report);

// Computes C = alpha op(A) op(B) + beta C of one batch item in the engine's native arithmetic, which keeps
// the contract of its type (docs/design/bounds.md). Uses native_scratch_bytes() of the workspace for a
// product in a fixed order.
template <class T>
void multiply_natively(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                       const Operands& operands, std::int64_t item, Workspace& workspace);

// True if the native product of the vectors of `a` and `b` (op(B) transposed) is correctly rounded in any
// order of additions: because all elements are multiples of a unit and small enough, so that nothing is
// rounded, or because the vectors have one element each. The summaries are those of the operands' ranges.
template <class T>
bool native_is_exact(const MatrixView<const T>& a, const RangeSummary& range_a, const MatrixView<const T>& b,
                     const RangeSummary& range_b);

// Replaces the scales of set_program() by the scales of the program's ScaleRule
// (arith/residue/residue_scale.hpp): by norms or by a product of magnitudes, for the whole problem. The two
// vectors of a complex column get the same scale. The workspace is used only during the call.
template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace);

// ---------------------------------------------------------------- Ozaki scheme I

// Algorithms 1 to 3 of dgemm-tc (Recombination::ozaki1), on any engine of the host.

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

// ---------------------------------------------------------------- exponents per tile

// One operand of a block of C: its elements, and the ranges and slices of its vectors.
template <class View>
struct TiledOperand {
  View elements;
  std::span<const VectorRange> ranges;
  Slices slices;
};

// Writes group 1 of `sums`: the half-precision products of all pairs of a tile of A and a tile of B of which
// at least one tile fails Eq. 9 of MixPert (docs/schemes/mixpert.md). Returns false and writes nothing if no
// tile fails. View: OperandView of float or std::complex<float>.
template <class View>
bool add_failing_tiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums,
                       int threads);

}  // namespace kintsugi::core
