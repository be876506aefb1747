// Elements of C whose operands have NaN or infinities, which slices cannot represent.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Writes the elements of C whose row of A or column of B has a NaN or an infinity, which recombine_weighted
// does not write: alpha * s + beta * C by IEEE 754 rules, where s is the sum of the products that have a
// non-finite factor; finite products cannot change a non-finite sum. a is m x k, b is n x k (op(B)
// transposed). With beta = 0, C is not read. A complex element has such a sum for each part, of the products
// that give the part (base/embedding.hpp); alpha and beta then multiply by parts (arith/complex.hpp).
template <class T>
void write_special_values(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                          std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                          int threads);

}  // namespace kintsugi::core
