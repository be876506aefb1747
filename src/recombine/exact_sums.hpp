// Product of exact sums, without an engine: every element is summed by a superaccumulator and rounded once.
#pragma once

#include <cstddef>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Bytes of scratch memory that multiply_exactly() needs; `length` is that of the operands' vectors: k, for
// complex elements 2 k.
template <class T>
std::size_t exact_scratch_bytes(std::int64_t length, int threads);

// C = RN(alpha A B + beta C) for finite rows and columns; a is m x k, b is n x k (op(B) transposed). With
// beta = 0, C is not read. Each part of a complex element is rounded once. If `states` is not null, elements
// (i, j) whose state (ElementCheck::State, recombine/residues.hpp), states[i + j * c.rows], is closed are not
// computed. Elements of a row or column with NaN or infinities are not written; write_special_values() writes
// them.
template <class T>
void multiply_exactly(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, std::byte* scratch, int threads);

}  // namespace kintsugi::core
