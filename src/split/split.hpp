// The host loop of a split: one pass over the operand, whatever the split's kind.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Writes all slices of `operand` (vectors x k) with the scales in `ranges`, padding included.
// View: OperandView of any type of elements. NaN and infinities become zero: the flags in `ranges` carry them
// (recombine/special_values.hpp). `inner`: factors of the inner indices; empty: none.
//
// Where the rule has a basis of complex residues, a vector of the slices is a row or column of elements and
// an element an element: slice_vectors x slice_length.
template <class View>
void split_operand(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                   const Slices& slices, int threads, std::span<const double> inner = {});

// Vectors that an operand's slices have for each of its rows or columns of elements, and their elements.
template <class T>
std::int64_t slice_vectors_each(const MatrixView<const T>&, const SplitRule&) {
  return 1;
}
template <class T>
std::int64_t slice_vectors_each(const EmbeddedView<T>& operand, const SplitRule& rule) {
  return operand.right && rule.complex_basis.empty() ? 2 : 1;
}
template <class View>
std::int64_t slice_length(const View& operand, const SplitRule& rule) {
  return rule.complex_basis.empty() ? operand.columns : operand.columns / 2;
}

}  // namespace kintsugi::core
