// Finds the unreliable sums of a native product, and recomputes their elements: those that underflow,
// overflow or special values may have spoiled.
#pragma once

#include <cstdint>

#include "base/embedding.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

// The product C = alpha A B + beta C, where `a` is m x k and `b` is n x k (op(B) transposed). T is real or
// complex. Double-double products need no such check, since the engines check every sum before it is rounded
// (recombine/pair_element.hpp).
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

// Writes C from native sums, where factor times `sums` is alpha A B. If beta = 0, the sums may be in C.
//
// A finite sum is valid if it reaches the limit of underflow_limits() (arith/underflow.hpp), or if no product
// of its row of A and its column of B underflows. All other elements are recomputed. If the row or column has
// NaN or infinities, the element follows IEEE 754 (recombine/special_values.hpp). Otherwise it is computed
// without underflow and overflow: FP32 sums in FP64, and FP64 sums exactly. Returns the number of recomputed
// elements.
template <class T>
std::int64_t finish_native_sums(const NativeCheck<T>& check, const MatrixView<T>& sums, T factor);

// True if a native product may add its sums to C before they are checked, because finish_native_totals() can
// find unreliable elements from the totals. Precondition: C is real, and alpha is 1 or -1.
template <class T>
bool can_add_natively(const NativeCheck<T>& check);

// Like finish_native_sums(), for totals alpha A B + beta C that are already in C. Underflow of a product is
// harmless if the old element of C was large. Precondition: can_add_natively() was true, so all other old
// elements were zero.
template <class T>
std::int64_t finish_native_totals(const NativeCheck<T>& check);

// True if the smallest and largest elements of A and B prove that nothing underflows or overflows in native
// arithmetic, for every order of additions and whether alpha multiplies operands or sums. False if there are
// NaN or infinities. For complex numbers the elements of C are tested, too.
template <class T>
bool is_harmless_natively(const NativeCheck<T>& check);

}  // namespace kintsugi::core
