// Complex numbers, and complex matrices as real ones of twice the inner length. Every step from the ranges to
// the products then runs as for a real product.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "base/view.hpp"

namespace kintsugi::core {

// A complex number for device code, with the layout of std::complex. Device code cannot compute with
// std::complex: nvcc 13.0 generates no code, without a warning, for conversions and += of libstdc++, which
// use the host compiler's built-in complex type.
template <class T>
struct Complex {
  constexpr Complex(T real_part = 0, T imaginary_part = 0) : re(real_part), im(imaginary_part) {}

  constexpr T real() const { return re; }
  constexpr T imag() const { return im; }

  friend constexpr bool operator==(const Complex& x, const Complex& y) {
    return x.re == y.re && x.im == y.im;
  }
  friend constexpr Complex operator+(const Complex& x, const Complex& y) {
    return {x.re + y.re, x.im + y.im};
  }

  T re;
  T im;
};

template <class T>
struct RealOfElement {
  using type = T;
};
template <class T>
struct RealOfElement<std::complex<T>> {
  using type = T;
};
template <class T>
struct RealOfElement<Complex<T>> {
  using type = T;
};

// Real type of an element's parts, and the number of parts.
template <class T>
using RealOf = typename RealOfElement<T>::type;
template <class T>
inline constexpr bool is_complex = !std::is_same_v<T, RealOf<T>>;
template <class T>
concept ComplexElement = is_complex<T>;
template <class T>
inline constexpr std::int64_t parts_of = is_complex<T> ? 2 : 1;

// The vectors of a complex operand, read in place. The two parts of an element are adjacent along k:
//
//   op(A), row i           (re a_i0,  im a_i0, re a_i1,  im a_i1, ...)
//   op(B), column j        (re b_0j, -im b_0j, re b_1j, -im b_1j, ...)   as vector 2 j: gives re c_ij
//                          (im b_0j,  re b_0j, im b_1j,  re b_1j, ...)   as vector 2 j + 1: gives im c_ij
//
// A conjugated operand has the opposite sign of every im. Vectors 2 j and 2 j + 1 have elements of the same
// magnitudes, in another order.
template <class T, class Element = std::complex<T>>
struct EmbeddedView {
  MatrixView<const Element> matrix;  // vectors x k, before conjugation
  bool right = false;                // op(B): two vectors per column
  bool conjugated = false;
  std::int64_t rows = 0;     // number of vectors
  std::int64_t columns = 0;  // elements of each vector: 2 k

  EmbeddedView() = default;
  constexpr EmbeddedView(const MatrixView<const Element>& vectors, bool is_right, bool conjugate)
      : matrix(vectors), right(is_right), conjugated(conjugate),
        rows(is_right ? 2 * vectors.rows : vectors.rows), columns(2 * vectors.columns) {}

  constexpr T operator()(std::int64_t v, std::int64_t p) const {
    const Element& element = matrix(right ? v >> 1 : v, p >> 1);
    const bool gives_real_part = right && (v & 1) == 0;
    // Elements with odd p are imaginary parts. In op(B)'s vectors 2 j + 1, elements with even p are.
    const bool is_imaginary = ((p & 1) != 0) == (!right || gives_real_part);
    if (!is_imaginary) return element.real();
    return conjugated != gives_real_part ? -element.imag() : element.imag();
  }

  // `count` whole vectors from `first` on. In op(B) a column has two vectors: there both numbers must be
  // even.
  constexpr EmbeddedView vectors(std::int64_t first, std::int64_t count) const {
    const std::int64_t vectors_each = right ? 2 : 1;  // vectors per row of `matrix`
    return {matrix.block(first / vectors_each, 0, count / vectors_each, matrix.columns), right, conjugated};
  }
};

// View of an operand with elements of type T. Every step from the ranges to the products reads through it.
template <class T>
struct OperandViewOf {
  using type = MatrixView<const T>;
};
template <class T>
struct OperandViewOf<std::complex<T>> {
  using type = EmbeddedView<T>;
};
template <class T>
struct OperandViewOf<Complex<T>> {
  using type = EmbeddedView<T, Complex<T>>;
};
template <class T>
using OperandView = typename OperandViewOf<T>::type;

// For explicit instantiations: INSTANTIATE(View) for the views, and INSTANTIATE(T) for the element types, of
// operands without and with double-double numbers (formats/double_double.hpp).
#define KINTSUGI_FOR_VIEWS(INSTANTIATE) \
  INSTANTIATE(MatrixView<const float>)  \
  INSTANTIATE(MatrixView<const double>) \
  INSTANTIATE(EmbeddedView<float>)      \
  INSTANTIATE(EmbeddedView<double>)
#define KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE) \
  KINTSUGI_FOR_VIEWS(INSTANTIATE)           \
  INSTANTIATE(MatrixView<const DoubleDouble>)
#define KINTSUGI_FOR_TYPES(INSTANTIATE) \
  INSTANTIATE(float)                    \
  INSTANTIATE(double)                   \
  INSTANTIATE(std::complex<float>)      \
  INSTANTIATE(std::complex<double>)
#define KINTSUGI_FOR_ALL_TYPES(INSTANTIATE) \
  KINTSUGI_FOR_TYPES(INSTANTIATE)           \
  INSTANTIATE(DoubleDouble)

}  // namespace kintsugi::core
