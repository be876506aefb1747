// Splits an operand into slices on the host, for every SplitKind, in one pass over the operand.
#pragma once

#include <cstdint>
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

// ---------------------------------------------------------------- parts of split_operand()

// Marks the tiles of vectors first ... last - 1 as zero. Does nothing if the slices have no tiles.
void clear_tiles(const Slices& slices, std::int64_t first, std::int64_t last);

// Writes exponents and segments of vectors first ... last - 1, of which the first begins a panel. `ranges`
// have the panels' scales (set_scales()). View: OperandView of float or std::complex<float>.
template <class View>
void split_block_into_tiles(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                            const Slices& slices, std::int64_t first, std::int64_t last);

// Writes vectors first ... last - 1 of the slices: the results of split_into_residues() for all elements. NaN
// and infinities count as zeros. `inner_factors`: factors of the inner indices; empty: none.
template <class View>
void split_block_into_residues(const View& operand, const SplitRule& rule,
                               std::span<const VectorRange> ranges, const Slices& slices,
                               std::span<const double> inner_factors, std::int64_t first, std::int64_t last);

// Writes vectors first ... last - 1 of the slices for complex operands (arith/residue/complex_residue.hpp). A
// vector is a row of op(A) or a column of op(B) with complex elements. `ranges`: ranges of the embedding,
// which has two vectors of equal scales for each column of op(B). `inner_factors`: factors of the embedding's
// inner indices, equal for both parts of an element; empty: none.
template <class T>
void split_block_into_complex_residues(const EmbeddedView<T>& operand, const SplitRule& rule,
                                       std::span<const VectorRange> ranges, const Slices& slices,
                                       std::span<const double> inner_factors, std::int64_t first,
                                       std::int64_t last);

}  // namespace kintsugi::core
