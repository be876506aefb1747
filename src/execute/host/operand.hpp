// Operands of one batch item: their views, ranges, and slices of the blocks of C.
#pragma once

#include <cstdint>
#include <span>

#include "base/embedding.hpp"
#include "execute/blocks.hpp"
#include "execute/execute.hpp"
#include "planner/memory.hpp"
#include "planner/problem.hpp"
#include "split/split.hpp"

namespace kintsugi::core {

// Returns the pointer to the matrix of a batch item.
template <class T>
const T* batch_pointer(const void* data, BatchKind kind, std::int64_t stride, std::int64_t item) {
  if (kind == BatchKind::pointers) return static_cast<const T* const*>(data)[item];
  return static_cast<const T*>(data) + item * stride;
}

// Returns the prepared operand of a batch item; nullptr if the operand is not prepared.
inline const Prepared::Item* prepared_item(const Prepared* prepared, std::int64_t item) {
  if (prepared == nullptr) return nullptr;
  return &prepared->items[prepared->items.size() == 1 ? 0 : static_cast<std::size_t>(item)];
}

// Returns the view that the steps read of a matrix of vectors x k: for complex elements the embedding.
template <class T>
OperandView<T> operand_view(const MatrixView<const T>& vectors, Side side, bool conjugated) {
  if constexpr (is_complex<T>) {
    return {vectors, side == Side::b, conjugated};
  } else {
    return vectors;
  }
}

// Returns the dense copy of a prepared operand, vectors x k.
template <class T>
OperandView<T> view_of_copy(const Prepared& prepared, std::int64_t item) {
  const Prepared::Item& copied = *prepared_item(&prepared, item);
  return operand_view<T>({static_cast<const T*>(copied.copy.pointer()), prepared.vectors, prepared.k,
                          copied.vector_stride, copied.element_stride},
                         prepared.side, prepared.conjugated);
}

// Returns the m x k matrix op(A): the prepared copy if there is one, else the caller's matrix.
template <class T>
OperandView<T> view_of_a(const Problem& problem, const void* data, const Prepared* prepared,
                         std::int64_t item) {
  if (prepared != nullptr) return view_of_copy<T>(*prepared, item);
  return operand_view<T>(matrix_view(batch_pointer<T>(data, problem.batch_kind, problem.stride_a, item),
                                     problem.layout, problem.op_a, problem.m, problem.k, problem.lda),
                         Side::a, problem.op_a == Op::conjugate_transpose);
}

// Returns the n x k matrix op(B)^T, whose rows are the columns of op(B): the prepared copy if there is one,
// else the caller's matrix.
template <class T>
OperandView<T> view_of_b(const Problem& problem, const void* data, const Prepared* prepared,
                         std::int64_t item) {
  if (prepared != nullptr) return view_of_copy<T>(*prepared, item);
  return operand_view<T>(matrix_view(batch_pointer<T>(data, problem.batch_kind, problem.stride_b, item),
                                     problem.layout, problem.op_b, problem.k, problem.n, problem.ldb)
                             .transposed(),
                         Side::b, problem.op_b == Op::conjugate_transpose);
}

// Returns the matrix under a view, without embedding and conjugation, for native products.
template <class T>
const MatrixView<const T>& elements_of(const MatrixView<const T>& view) {
  return view;
}
template <class T>
const MatrixView<const std::complex<T>>& elements_of(const EmbeddedView<T>& view) {
  return view.matrix;
}
template <class T>
bool is_conjugated(const MatrixView<const T>&) {
  return false;
}
template <class T>
bool is_conjugated(const EmbeddedView<T>& view) {
  return view.conjugated;
}

// Returns a scalar of the call in the type of the problem's elements.
template <class T>
T scalar(const CallScalar& value) {
  return value.as<T>();
}

template <class T>
MatrixView<T> view_of_c(const Problem& problem, void* data, std::int64_t item) {
  T* pointer = problem.batch_kind == BatchKind::pointers ? static_cast<T* const*>(data)[item]
                                                         : static_cast<T*>(data) + item * problem.stride_c;
  return matrix_view(pointer, problem.layout, Op::none, problem.m, problem.n, problem.ldc);
}

// One operand of one batch item, with its ranges and slices.
template <class T>
struct SideOf {
  OperandView<T> view;  // vectors x k
  std::span<VectorRange> ranges;
  std::span<VectorNorm> norms{};  // empty: not known
  const Prepared::Item* prepared = nullptr;
  const SplitRule* rule = nullptr;          // split rule of the current program (set_program())
  Slices slices{};                          // memory for slices of one block
  std::span<const double> inner_factors{};  // factors of the inner indices; empty: none
};

// Sets the scales of splits into words (int52): the largest magnitude of each vector becomes less than
// 2^(top_exponent + 1), even after rounding up.
inline void set_scales_as_words(std::span<VectorRange> ranges, const SplitRule& rule) {
  for (VectorRange& range : ranges) {
    if ((range.flags & VectorRange::all_zero) == 0) range.scale = rule.top_exponent - range.raised;
  }
}

// Sets the program for which both sides will be split, with the scales of its vectors.
template <class T>
void set_program(const Program& program, SideOf<T>& a, SideOf<T>& b) {
  a.rule = &program.split_a;
  b.rule = &program.split_b;
  set_scales(a.ranges, *a.rule);
  set_scales(b.ranges, *b.rule);
  if (!program.scales_as_words) return;
  set_scales_as_words(a.ranges, *a.rule);
  set_scales_as_words(b.ranges, *b.rule);
}

// True if slices by the rule `available` can be used as slices by the rule `wanted`. The rules must be equal,
// or both must be rules for residues of real elements that differ only in the number of moduli, and
// `available` must have more moduli.
inline bool can_replace(const SplitRule& available, const SplitRule& wanted) {
  SplitRule shortened = available;
  const bool is_real_residues = wanted.kind == SplitKind::residues && wanted.complex_basis.empty();
  if (is_real_residues && wanted.scales == ScaleRule::exponent && wanted.slices <= available.slices) {
    shortened.slices = wanted.slices;
    shortened.sum_bits = wanted.sum_bits;
  }
  return shortened == wanted;
}

// Returns the slices of consecutive rows of op(A) or columns of op(B): prepared slices if they can be used,
// else new slices in the memory of side.slices. A complex column has two vectors in the view; in the slices
// it has one or two.
template <class T>
Slices split_vectors(const SideOf<T>& side, const Interval& rows_or_columns, int threads) {
  const auto [first, count] = rows_or_columns;
  const std::int64_t slice_vectors = slice_vectors_each(side.view, *side.rule);
  if (side.prepared != nullptr && side.prepared->slices.data != nullptr && side.inner_factors.empty() &&
      can_replace(side.prepared->rule, *side.rule) && side.prepared->slices.storage == side.slices.storage) {
    Slices slices = side.prepared->slices.block(slice_vectors * first, slice_vectors * count);
    slices.count = side.rule->slices;
    return slices;
  }
  Slices slices = side.slices;
  slices.vectors = slice_vectors * count;
  const std::int64_t view_vectors = side.view.rows / elements_of(side.view).rows;
  split_operand(side.view.vectors(view_vectors * first, view_vectors * count), *side.rule,
                side.ranges.subspan(view_vectors * first, view_vectors * count), slices, threads,
                side.inner_factors);
  return slices;
}

// Takes the memory of a block from the workspace, and assigns both sides the memory of their slices.
template <class T>
BlockMemory take_block(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                       SideOf<T>& b, Workspace& workspace) {
  const BlockMemory memory = lay_out_block(plan, program, blocking, workspace);
  a.slices = memory.a;
  b.slices = memory.b;
  return memory;
}

// Runs the program's schedule on slices, and returns the sums in the memory of a block.
inline Accumulators multiply_slices(const Plan& plan, const Program& program, Accumulator accumulator,
                                    const Slices& a, const Slices& b, const BlockMemory& memory) {
  Accumulators sums = memory.sums;
  sums.rows = a.vectors;
  sums.columns = b.vectors;
  plan.engine->host()->multiply({.schedule = &program.schedule,
                                 .a = a,
                                 .b = b,
                                 .sums = sums,
                                 .accumulator = accumulator,
                                 .scratch = memory.scratch,
                                 .threads = plan.threads});
  return sums;
}

}  // namespace kintsugi::core
