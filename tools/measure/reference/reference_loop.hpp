// Reference loops in an arithmetic wider than double, as baselines of timings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/view.hpp"

namespace kintsugi::measure {

enum class ArithmeticKind : std::uint8_t { long_double, double_double, float128, mpfr };

// Text           Arithmetic
// long-double    the compiler's long double: 64 significant bits on x86
// double-double  pairs of doubles, 103 bits in the worst case, vectorized
//                (tools/measure/reference/double_double_product.hpp)
// float128       __float128: 113 bits, in software
// mpfr:P         MPFR numbers of P bits, P from 53 up to 10000
struct Arithmetic {
  ArithmeticKind kind = ArithmeticKind::long_double;
  int significand_bits = 0;

  bool operator==(const Arithmetic&) const = default;
};

// Parses one of these texts. Throws core::Error (bad_setting) with the accepted forms for any other.
Arithmetic parse_arithmetic(std::string_view text);
// Returns the text from which parse_arithmetic() makes this arithmetic.
std::string to_text(const Arithmetic& arithmetic);

// Computes C = A B, a (m,k), b (k,n), c (m,n): every element is summed in the order of k in the arithmetic
// and rounded once to T. Threads share the rows of C.
template <class T>
void reference_loop(const Arithmetic& arithmetic, core::MatrixView<const T> a, core::MatrixView<const T> b,
                    core::MatrixView<T> c, int threads);

// Returns the coefficient of |sum - (AB)_ij| <= reference_loop_bound (|A||B|)_ij before the last rounding: k
// roundings of products and k of sums, at most k of which affect an element (Higham, Accuracy and Stability
// of Numerical Algorithms, section 3.1). If products underflow, double-double loses k 2^-1074 more.
double reference_loop_bound(const Arithmetic& arithmetic, std::int64_t k);

}  // namespace kintsugi::measure
