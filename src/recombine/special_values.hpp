// Elements of C whose row of A or column of B has NaN or infinities. Slices cannot represent these values.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Writes the elements that recombinations do not write. An element is alpha * s + beta * C by the rules of
// IEEE 754, where s is the sum of all products with a non-finite factor. (Finite products cannot change a
// non-finite sum.) `a` is m x k, `b` is n x k (op(B) transposed). C is not read if beta = 0. A complex
// element has a sum s for each part (base/embedding.hpp), and alpha and beta multiply the parts
// (arith/complex.hpp).
template <class T>
void write_special_values(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                          std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                          int threads);

}  // namespace kintsugi::core
