// Computes level-3 routines by products. For most routines each element of C comes from one product. For
// syr2k and her2k it is the sum of two products. For trsm substitution solves blocks of equations, and
// products update the right sides of the others.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "blas/answer.hpp"

namespace kintsugi::blas {

// ------------------------------------------------------------------ views of matrices

template <class T>
struct RealOf {
  using type = T;
};
template <class Real>
struct RealOf<std::complex<Real>> {
  using type = Real;
};
template <class T>
using Real = typename RealOf<T>::type;

template <class T>
constexpr bool is_complex_element = !std::is_same_v<Real<T>, T>;

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex_element<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// View of a column-major matrix, possibly transposed or conjugated. An operand of a product may be conjugated
// only if it is transposed, too (op = C).
template <class T>
struct View {
  T* data = nullptr;
  std::int64_t ld = 1;
  std::int64_t rows = 0, columns = 0;  // size of the view
  bool is_transposed = false;
  bool is_conjugated = false;

  // Returns the element in memory, not conjugated. value() returns the view's element.
  T& at(std::int64_t i, std::int64_t j) const { return is_transposed ? data[j + i * ld] : data[i + j * ld]; }
  std::remove_const_t<T> value(std::int64_t i, std::int64_t j) const {
    return is_conjugated ? conjugate<std::remove_const_t<T>>(at(i, j)) : at(i, j);
  }

  View block(std::int64_t i, std::int64_t j, std::int64_t block_rows, std::int64_t block_columns) const {
    View part = *this;
    part.data = data == nullptr ? nullptr : data + (is_transposed ? j + i * ld : i + j * ld);
    part.rows = block_rows;
    part.columns = block_columns;
    return part;
  }
  View rows_from_to(std::int64_t first, std::int64_t end) const {
    return block(first, 0, end - first, columns);
  }
  View columns_from_to(std::int64_t first, std::int64_t end) const {
    return block(0, first, rows, end - first);
  }

  View transposed() const {
    View other = *this;
    other.rows = columns;
    other.columns = rows;
    other.is_transposed = !is_transposed;
    return other;
  }

  operator View<const T>() const { return {data, ld, rows, columns, is_transposed, is_conjugated}; }
};

// Returns the view op(matrix), which has `rows` x `columns` elements.
template <class T>
View<const T> operand(Op op, const void* data, std::int64_t ld, std::int64_t rows, std::int64_t columns) {
  return {static_cast<const T*>(data), ld, rows, columns, op != Op::n, op == Op::c && is_complex_element<T>};
}

// Numbers of blocks into which the diagonal of a triangle is cut. Half of the work on a diagonal block is
// wasted, since the block is multiplied in full; this asks for many blocks. Neighbouring blocks split the
// same operands again; this asks for few blocks. Times measured with 1, 2, 4 and 8 blocks, relative to one
// full product: syrk 1.01, 0.92, 0.98, 1.19; trmm 1.69, 1.36, 1.38, 1.20 (FP64 by residues, one core of a Zen
// 5, n = 1024).
constexpr std::int64_t blocks_of_update = 2;
constexpr std::int64_t blocks_of_triangular = 8;

// Returns the rows of one block, at least 64. In smaller products the fixed cost of a call dominates.
inline std::int64_t block_size(std::int64_t dimension, std::int64_t blocks) {
  return std::max<std::int64_t>(64, (dimension + blocks - 1) / blocks);
}

// ------------------------------------------------------------------ products

template <class T>
constexpr kintsugi_type type_of() {
  constexpr bool is_single = std::is_same_v<Real<T>, float>;
  if constexpr (is_complex_element<T>) return is_single ? KINTSUGI_C32 : KINTSUGI_C64;
  return is_single ? KINTSUGI_F32 : KINTSUGI_F64;
}

// The products that compute one call. Each product is decided, and emulated or forwarded, like a gemm.
class Products {
 public:
  // `outcome`: receives the outcome of the whole call.
  Products(const Symbol& symbol, const Site* site, CallOutcome& outcome)
      : symbol_(symbol), site_(site), outcome_(outcome) {
    outcome_.only_scaled = true;
  }

  // C := alpha A B + beta C. C must not overlap A or B. If alpha = 0, A and B are not read and may be null:
  // the product is made with k = 0, since some BLAS libraries read A and B in spite of alpha = 0. A product
  // that cannot be emulated is multiplied natively.
  template <class T>
  void multiply(const T& alpha, const View<const T>& a, const View<const T>& b, const T& beta,
                const View<T>& c) {
    if (c.is_transposed) return multiply(alpha, b.transposed(), a.transposed(), beta, c.transposed());
    const auto op = [](const View<const T>& view) {
      return view.is_conjugated ? Op::c : view.is_transposed ? Op::t : Op::n;
    };
    Call call = product(type_of<T>(), op(a), op(b), c.rows, c.columns, alpha == T(0) ? 0 : a.columns, &alpha,
                        a.data, a.ld, b.data, b.ld, &beta, c.data, c.ld);
    call.site = site_;
    run(call);
  }

  // True if the call has the accuracy `reproducible`, by the settings or by its site's rule.
  bool are_reproducible() const;

  // Makes "substitution" the program of the outcome until a product replaces it.
  void note_substitution();

  // Computes a product that is given as a gemm call.
  void run(const Call& product) noexcept;

 private:
  // Adds the outcome of one product of `multiplications` multiplications to the outcome of the call.
  void add(const CallOutcome& part, double multiplications);

  const Symbol& symbol_;
  const Site* site_;
  CallOutcome& outcome_;
  double largest_ = -1;  // multiplications of the largest product so far; the outcome names its program
};

// Returns the largest product of the call. The decision on this product decides whether the whole call is
// emulated or forwarded.
Call largest_product(const Call& call);

// Computes a call whose arguments are right. Throws std::bad_alloc only before anything is written.
void compose(const Call& call, Products& products);

}  // namespace kintsugi::blas
