// Complex numbers of kernels.
#pragma once

namespace kintsugi::core {

// Laid out as std::complex, which no kernel computes with: where libstdc++ uses the host compiler's own
// complex numbers (conversions, +=), nvcc 13.0 makes no code at all and does not say so.
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

}  // namespace kintsugi::core
