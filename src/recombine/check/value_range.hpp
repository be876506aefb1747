// Finds ranges of magnitudes, from bit patterns.
#pragma once

#include <cstdint>
#include <limits>

#include "base/embedding.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

// Smallest non-zero magnitude and largest magnitude of some numbers. If a number is infinite or NaN, so is
// `largest`.
struct ValueRange {
  double least = std::numeric_limits<double>::infinity();
  double largest = 0;

  bool finite() const { return largest <= std::numeric_limits<double>::max(); }
  // Extends the range by another one. A range that is not finite stays so.
  ValueRange& operator+=(const ValueRange& other) {
    if (other.least < least) least = other.least;
    if (finite() && !(other.largest <= largest)) largest = other.largest;
    return *this;
  }

  // True if every number is zero, or finite with at least this magnitude.
  bool all_zero_or_at_least(double magnitude) const { return finite() && least >= magnitude; }
};

// Returns the range of `count` contiguous numbers.
ValueRange range_of(const float* x, std::int64_t count);
ValueRange range_of(const double* x, std::int64_t count);

// Sets the range of each row of a matrix. Parts of complex elements count as numbers. One stride must be 1.
template <class T>
void find_ranges_of_rows(const MatrixView<const T>& matrix, ValueRange* ranges);

// True if all magnitudes are finite and at least `least`. Precondition: least > 0.
bool all_at_least(const float* x, std::int64_t count, float least);
bool all_at_least(const double* x, std::int64_t count, double least);

// The contiguous lines of a matrix: its columns or, if it is row-major, its rows. A matrix without gaps
// between lines is a single line. A complex element is two numbers.
template <class Real>
struct Lines {
  Real* data;
  std::int64_t length;  // numbers in a line
  std::int64_t count;   // number of lines
  std::int64_t stride;  // distance of two lines, in numbers

  Real* line(std::int64_t l) const { return data + l * stride; }
};

// Returns the lines of a matrix. One of its strides must be 1.
template <class T>
auto lines_of(const MatrixView<T>& matrix) {
  using Real = std::conditional_t<std::is_const_v<T>, const RealOf<std::remove_const_t<T>>, RealOf<T>>;
  const MatrixView<T> view = matrix.row_stride == 1 ? matrix : matrix.transposed();
  constexpr std::int64_t parts = parts_of<std::remove_const_t<T>>;
  Lines<Real> lines{.data = reinterpret_cast<Real*>(view.data),
                    .length = parts * view.rows,
                    .count = view.columns,
                    .stride = parts * view.column_stride};
  if (lines.stride == lines.length)
    return Lines<Real>{.data = lines.data, .length = lines.length * lines.count, .count = 1, .stride = 0};
  return lines;
}

}  // namespace kintsugi::core
