// Products without an engine: every element summed exactly and rounded once.
#pragma once

#include <cstddef>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Bytes of scratch that multiply_exactly() needs for vectors of `length` elements: k, of complex elements 2
// k.
template <class T>
std::size_t exact_scratch_bytes(std::int64_t length, int threads);

// C = RN(alpha A B + beta C) for finite rows and columns; a is m x k, b is n x k (op(B) transposed). With
// beta = 0, C is not read. Of complex elements each part is rounded once. `open`, where it is not null, says
// which elements are wanted: element i + j rows. Elements of a row or column with NaN or infinities are left
// alone, for put_special_values.
template <class T>
void multiply_exactly(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* open, std::byte* scratch, int threads);

}  // namespace kintsugi::core
