// Elements of C that native arithmetic computed: which underflow, overflow or special values may have
// spoiled, and these elements again.
#pragma once

#include <cstdint>

#include "base/embedding.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

// C = alpha A B + beta C; a is m x k, b is n x k (op(B) transposed). T: real or complex, not double-double,
// whose engines see every sum before it is rounded (recombine/pair_element.hpp).
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

// The last step of native sums: `sums` has factor^-1 alpha A B, in a memory of its own or, with beta = 0, in
// that of C.
//
// A sum that is as large as underflow_limits() (arith/underflow.hpp) asks for stands. Of the others those
// stand whose row of A and column of B have no products that underflow. The rest, and sums that are not
// finite, are computed again: by IEEE 754 rules where the row or column has NaN or infinities
// (recombine/special_values.hpp), else so that nothing underflows or overflows, FP32's sums in FP64 and
// FP64's exactly. Returns how many these were.
template <class T>
std::int64_t finish_native_sums(const NativeCheck<T>& check, const MatrixView<T>& sums, T factor);

// Whether the original elements of real C allow that native sums are added to them before they are looked at,
// with alpha = 1 or -1: finish_native_totals() then knows what it needs of them.
template <class T>
bool can_add_natively(const NativeCheck<T>& check);

// The same as finish_native_sums() of totals alpha A B + beta C. What underflow may do to a product is
// harmless beside an original that is not small, and can_add_natively() has seen that every other original is
// zero.
template <class T>
std::int64_t finish_native_totals(const NativeCheck<T>& check);

// Whether no order and no place of alpha in native arithmetic lets anything underflow or overflow, by the
// smallest and the largest elements of A and B; with NaN or infinities it is false. For complex numbers C is
// looked at too.
template <class T>
bool is_harmless_natively(const NativeCheck<T>& check);

}  // namespace kintsugi::core
