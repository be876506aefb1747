// Checks of elements of C computed in native arithmetic: finds those that underflow, overflow or special
// values may have spoiled, and recomputes them.
#pragma once

#include <cstdint>

#include "base/embedding.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

// The product C = alpha A B + beta C; a is m x k, b is n x k (op(B) transposed). T is real or complex, not
// double-double, whose engines check every sum before it is rounded (recombine/pair_element.hpp).
template <class T>
struct NativeCheck {
  OperandView<T> a;
  OperandView<T> b;
  T alpha;
  T beta;
  MatrixView<T> c;
  int threads = 1;

  NativeCheck block(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) const {
    return {a.vectors(i, rows),
            b.vectors(parts_of<T> * j, parts_of<T> * columns),
            alpha,
            beta,
            c.block(i, j, rows, columns),
            threads};
  }
};

// Writes C from native sums: factor times `sums` is alpha A B. The sums lie in memory of their own or, with
// beta = 0, in C's.
//
// A sum at least as large as the limit of underflow_limits() (arith/underflow.hpp) is valid; so is a smaller
// sum whose row of A and column of B have no products that underflow. All others, and sums that are not
// finite, are recomputed: by IEEE 754 rules where the row or column has NaN or infinities
// (recombine/special_values.hpp), else without underflow or overflow, FP32's sums in FP64 and FP64's exactly.
// Returns the number of recomputed elements.
template <class T>
std::int64_t finish_native_sums(const NativeCheck<T>& check, const MatrixView<T>& sums, T factor);

// True if, for a real C and alpha = 1 or -1, the native product may add its sums to the old elements of C
// before anything is checked: finish_native_totals() then finds from the totals alone what was spoiled.
template <class T>
bool can_add_natively(const NativeCheck<T>& check);

// Like finish_native_sums(), for totals alpha A B + beta C already in C. Underflow of a product is harmless
// where the old element of C was large enough; can_add_natively() has made sure that all other old elements
// were zero.
template <class T>
std::int64_t finish_native_totals(const NativeCheck<T>& check);

// True if the smallest and largest elements of A and B prove that nothing underflows or overflows in native
// arithmetic, in whatever order it adds and wherever it multiplies by alpha; false with NaN or infinities.
// For complex numbers the elements of C are checked, too.
template <class T>
bool is_harmless_natively(const NativeCheck<T>& check);

}  // namespace kintsugi::core
