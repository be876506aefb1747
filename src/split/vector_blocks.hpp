// Order in which host loops visit the elements of an operand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/embedding.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::core {

// Vectors processed together. An operand whose vectors are interleaved in memory is then read in whole cache
// lines, of 16 floats each.
inline constexpr std::int64_t vectors_per_block = 16;

// x, or 0 in place of NaN and infinities, which slices cannot hold.
template <class T>
double finite_or_zero(T x) {
  return x - x == T(0) ? static_cast<double>(x) : 0.0;
}
// Rounds double-double numbers towards zero: only lower bounds of magnitudes take them as one double.
inline double finite_or_zero(const DoubleDouble& x) {
  return is_finite(leading_part(x)) ? truncated(x) : 0.0;
}

// Like finite_or_zero(), but rounds double-double numbers away from zero, for upper bounds of magnitudes. The
// largest double stands for numbers beyond it too, since the bounds round up what they read.
template <class T>
double finite_above(T x) {
  return finite_or_zero(x);
}
inline double finite_above(const DoubleDouble& x) {
  return is_finite(leading_part(x)) ? away_from_zero(x) : 0.0;
}

// Loads elements begin ... end - 1 of a vector, times the factors of their inner indices if there are any.
template <class View>
void load_elements(const View& operand, std::span<const double> inner_factors, std::int64_t v,
                   std::int64_t begin, std::int64_t end, double* elements) {
  for (std::int64_t p = begin; p < end; ++p) elements[p - begin] = finite_or_zero(operand(v, p));
  if (inner_factors.empty()) return;
  for (std::int64_t p = begin; p < end; ++p) elements[p - begin] *= inner_factors[p];
}

// Like load_elements() above, for double-double numbers, word by word.
inline void load_elements(const MatrixView<const DoubleDouble>& operand,
                          std::span<const double> inner_factors, std::int64_t v, std::int64_t begin,
                          std::int64_t end, double* high, double* low) {
  for (std::int64_t p = begin; p < end; ++p) {
    const DoubleDouble x = normalized(operand(v, p));
    const double factor = inner_factors.empty() ? 1 : inner_factors[p];
    high[p - begin] = is_finite(x.hi) ? x.hi * factor : 0.0;
    low[p - begin] = x.lo * factor;
  }
}

// Distance in memory, in elements of the caller's matrix, between an element of a vector and the next one.
template <class T>
std::int64_t element_stride(const MatrixView<T>& operand) {
  return operand.column_stride;
}
template <class T>
std::int64_t element_stride(const EmbeddedView<T>& operand) {
  return operand.matrix.column_stride;
}

// Calls visit(v, p, operand(v, p)) for vectors first...last - 1 and all p; for each v, p ascends.
template <class View, class Visit>
void for_each_element(const View& operand, std::int64_t first, std::int64_t last, Visit&& visit) {
  // Elements at strides of a power of two share one set of the L1 cache, which holds eight lines: not more
  // than eight inner indices are then visited before the next vector.
  const std::int64_t chunk = element_stride(operand) == 1 ? 64 : 8;
  for (std::int64_t begin = 0; begin < operand.columns; begin += chunk) {
    const std::int64_t end = std::min(operand.columns, begin + chunk);
    for (std::int64_t v = first; v < last; ++v) {
      for (std::int64_t p = begin; p < end; ++p) visit(v, p, operand(v, p));
    }
  }
}

}  // namespace kintsugi::core
