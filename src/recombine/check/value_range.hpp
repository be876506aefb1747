// Ranges of the magnitudes of many numbers, from their bit patterns.
#pragma once

#include <cstdint>
#include <limits>

#include "base/embedding.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

// Smallest non-zero and largest magnitude of some numbers; `largest` is infinite or NaN if one of them is.
struct ValueRange {
  double least = std::numeric_limits<double>::infinity();
  double largest = 0;

  bool finite() const { return largest <= std::numeric_limits<double>::max(); }
  // Extends the range by another; a range that is not finite stays so.
  ValueRange& operator+=(const ValueRange& other) {
    if (other.least < least) least = other.least;
    if (finite() && !(other.largest <= largest)) largest = other.largest;
    return *this;
  }

  // True if every number is zero or finite with at least that magnitude.
  bool all_zero_or_at_least(double magnitude) const { return finite() && least >= magnitude; }
};

// Range of `count` contiguous numbers.
ValueRange range_of(const float* x, std::int64_t count);
ValueRange range_of(const double* x, std::int64_t count);

// Range of each row of a matrix, of which one stride is 1. The range of complex elements is that of their
// parts.
template <class T>
void find_ranges_of_rows(const MatrixView<const T>& matrix, ValueRange* ranges);

// True if all magnitudes are finite and at least `least`, which is above 0.
bool all_at_least(const float* x, std::int64_t count, float least);
bool all_at_least(const double* x, std::int64_t count, double least);

// A matrix as its contiguous lines: columns if it is column-major, rows if it is row-major; the whole matrix
// is one line if its leading dimension leaves no gaps. Complex elements are two numbers.
template <class Real>
struct Lines {
  Real* data;
  std::int64_t length;  // numbers in a line
  std::int64_t count;   // lines
  std::int64_t stride;  // numbers from one line's first to the next one's

  Real* line(std::int64_t l) const { return data + l * stride; }
};

// Lines of a matrix of which one stride is 1.
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
