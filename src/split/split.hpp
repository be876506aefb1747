// Splits an operand into slices on the host, for every SplitKind, in one pass over the operand.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Writes all slices of `operand` (vectors x k), including padding, with the scales in `ranges`. NaN and
// infinities become zero; recombination treats them by the flags in `ranges` (recombine/special_values.hpp).
// View: OperandView of any element type. `inner_factors`: factors of the inner indices; empty: none. If the
// rule has a basis of complex residues, a vector of the slices has complex elements.
template <class View>
void split_operand(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                   const Slices& slices, int threads, std::span<const double> inner_factors = {});

// Returns the number of vectors of a slice for each row or column of the caller's matrix: two for a column of
// op(B) in an embedding, else one.
template <class T>
std::int64_t slice_vectors_each(const MatrixView<const T>&, const SplitRule&) {
  return 1;
}
template <class T>
std::int64_t slice_vectors_each(const EmbeddedView<T>& operand, const SplitRule& rule) {
  return operand.right && rule.complex_basis.empty() ? 2 : 1;
}
// Returns the number of elements in a vector of a slice.
template <class View>
std::int64_t slice_length(const View& operand, const SplitRule& rule) {
  return rule.complex_basis.empty() ? operand.columns : operand.columns / 2;
}

}  // namespace kintsugi::core
