// Split of an operand into slices on the host, for every SplitKind: one pass over the operand.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Writes all slices of `operand` (vectors x k) with the scales in `ranges`, padding included. View:
// OperandView of any element type. NaN and infinities become zero; the flags in `ranges` keep them
// (recombine/special_values.hpp). `inner_factors`: factors of the inner indices; empty: none.
//
// If the rule has a basis of complex residues, a vector of the slices is a row or column of complex elements.
template <class View>
void split_operand(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                   const Slices& slices, int threads, std::span<const double> inner_factors = {});

// Number of a slice's vectors for each row or column of the caller's matrix: two for a column of op(B) that
// is embedded as real vectors.
template <class T>
std::int64_t slice_vectors_each(const MatrixView<const T>&, const SplitRule&) {
  return 1;
}
template <class T>
std::int64_t slice_vectors_each(const EmbeddedView<T>& operand, const SplitRule& rule) {
  return operand.right && rule.complex_basis.empty() ? 2 : 1;
}
// Number of elements of a slice's vector.
template <class View>
std::int64_t slice_length(const View& operand, const SplitRule& rule) {
  return rule.complex_basis.empty() ? operand.columns : operand.columns / 2;
}

}  // namespace kintsugi::core
