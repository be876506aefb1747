// Complex numbers for device code.
#pragma once

namespace kintsugi::core {

// A complex number with the layout of std::complex. Device code cannot compute with std::complex: nvcc 13.0
// generates no code, without a warning, for conversions and += of libstdc++, which use the host compiler's
// built-in complex type.
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
