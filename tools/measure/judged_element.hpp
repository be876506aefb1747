// Comparison of one computed element of C with the exact one, by the rules of ErrorReport.
#pragma once

#include "tools/measure/metrics.hpp"

namespace kintsugi::measure {

struct Judged {
  ElementError element;
  bool correctly_rounded = false;
  bool zero_reference = false;
  bool overflowed = false;
  bool special_reference = false;
  bool special_mismatch = false;
  bool within_bound = true;
  long double error_square = 0;  // long double holds the squares of all doubles
  long double exact_square = 0;
};

// Judges an element. `bound`: the contract's coefficient; `underflow`: its absolute term.
template <class T>
Judged judge(const ElementReference<T>& reference, T computed, double bound, double underflow);

// Returns |C - R| / (|alpha| |A||B| + |beta C0|).
double componentwise(const Judged& judged);

extern template Judged judge(const ElementReference<float>&, float, double, double);
extern template Judged judge(const ElementReference<double>&, double, double, double);
extern template Judged judge(const ElementReference<core::DoubleDouble>&, core::DoubleDouble, double, double);

}  // namespace kintsugi::measure
