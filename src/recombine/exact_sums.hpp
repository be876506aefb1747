// Product of exact sums, without an engine. A superaccumulator sums every element, which is then rounded
// once.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Rounds a real element that was summed exactly: returns RN(alpha * sum + beta * c). arith/complex.hpp rounds
// complex elements. `c` is null if beta = 0.
template <class T>
T rounded_result(ExactSum& sum, T alpha, T beta, const T* c) {
  if (!std::isfinite(alpha) || (c != nullptr && !std::isfinite(beta)))
    return special_epilogue(sum.sign(), alpha, beta, c);
  sum.multiply(static_cast<double>(alpha));
  if (c != nullptr) sum.add_product(beta, *c);
  return rounded<T>(sum);
}

// Returns the scratch bytes that multiply_exactly() needs. `length`: length of the operands' vectors (k, or 2
// k for complex elements).
template <class T>
std::size_t exact_scratch_bytes(std::int64_t length, int threads);

// C = RN(alpha A B + beta C), where `a` is m x k and `b` is n x k (op(B) transposed). C is not read if beta =
// 0. Each part of a complex element is rounded once. Elements of rows and columns with NaN or infinities are
// not written; write_special_values() writes them. `states`: if not null, closed elements are not computed;
// the state of element (i, j) is states[i + j * c.rows] (ElementCheck::State, recombine/residues.hpp).
template <class T>
void multiply_exactly(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, std::byte* scratch, int threads);

}  // namespace kintsugi::core
