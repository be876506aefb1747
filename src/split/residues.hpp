// Residues of many elements at once, real and complex.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Writes vectors first ... last - 1 of the slices: the results of split_into_residues() for all elements. NaN
// and infinities count as zeros. `inner_factors`: factors of the inner indices; empty: none.
template <class View>
void split_block_into_residues(const View& operand, const SplitRule& rule,
                               std::span<const VectorRange> ranges, const Slices& slices,
                               std::span<const double> inner_factors, std::int64_t first, std::int64_t last);

// Writes vectors first ... last - 1 of the slices for complex operands (arith/residue/complex_residue.hpp). A
// vector is a row of op(A) or a column of op(B) with
// complex elements. `ranges`: ranges of the embedding, which has two vectors of equal scales for each column
// of op(B). `inner_factors`: factors of the embedding's inner indices, equal for both parts of an element;
// empty: none.
template <class T>
void split_block_into_complex_residues(const EmbeddedView<T>& operand, const SplitRule& rule,
                                       std::span<const VectorRange> ranges, const Slices& slices,
                                       std::span<const double> inner_factors, std::int64_t first,
                                       std::int64_t last);

}  // namespace kintsugi::core
