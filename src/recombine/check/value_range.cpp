#include "recombine/check/value_range.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/vectorised.hpp"

namespace kintsugi::core {

namespace {

// Bit patterns of magnitudes. Their order is the order of the magnitudes. They are signed integers, because
// all instruction sets can compare these.
template <class T>
using Pattern = std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>;
template <class T>
constexpr Pattern<T> all_but_sign = std::numeric_limits<Pattern<T>>::max();
template <class T>
constexpr Pattern<T> pattern_of(T x) {
  return std::bit_cast<Pattern<T>>(x);
}

// Converts patterns to a range. `below`: pattern of the smallest non-zero magnitude minus 1.
template <class T>
[[gnu::always_inline]] inline ValueRange as_range(Pattern<T> below, Pattern<T> largest) {
  if (largest == 0) return {};
  return {.least = static_cast<double>(std::bit_cast<T>(static_cast<Pattern<T>>(below + 1))),
          .largest = static_cast<double>(std::bit_cast<T>(largest))};
}

// Returns the magnitude's pattern minus 1. For zero this is the largest pattern, so zeros do not count in a
// minimum.
template <class T>
[[gnu::always_inline]] inline Pattern<T> below_magnitude(Pattern<T> magnitude) {
  return (magnitude - 1) & all_but_sign<T>;
}

template <class T>
[[gnu::always_inline]] inline ValueRange find_range(const T* x, std::int64_t count) {
  Pattern<T> below_smallest = all_but_sign<T>;
  Pattern<T> largest = 0;
  for (std::int64_t l = 0; l < count; ++l) {
    const Pattern<T> magnitude = pattern_of(x[l]) & all_but_sign<T>;
    const Pattern<T> below = below_magnitude<T>(magnitude);
    below_smallest = below < below_smallest ? below : below_smallest;
    largest = magnitude > largest ? magnitude : largest;
  }
  return as_range<T>(below_smallest, largest);
}

// Ranges of rows whose elements in one column are contiguous. Lane l is row l, or one part of a complex row.
constexpr std::int64_t lanes = 128;
template <class T>
struct Lanes {
  Pattern<T> below[lanes];  // pattern of the smallest non-zero magnitude minus 1
  Pattern<T> largest[lanes];

  Lanes() {
    std::fill_n(below, lanes, all_but_sign<T>);
    std::fill_n(largest, lanes, 0);
  }
};

template <class T>
[[gnu::always_inline]] inline void extend(const T* x, std::int64_t count, Lanes<T>& ranges) {
  for (std::int64_t l = 0; l < count; ++l) {
    const Pattern<T> magnitude = pattern_of(x[l]) & all_but_sign<T>;
    const Pattern<T> below = below_magnitude<T>(magnitude);
    ranges.below[l] = below < ranges.below[l] ? below : ranges.below[l];
    ranges.largest[l] = magnitude > ranges.largest[l] ? magnitude : ranges.largest[l];
  }
}

template <class T>
[[gnu::always_inline]] inline bool are_at_least(const T* x, std::int64_t count, T least) {
  Pattern<T> smallest = all_but_sign<T>;
  Pattern<T> largest = 0;
  for (std::int64_t l = 0; l < count; ++l) {
    const Pattern<T> magnitude = pattern_of(x[l]) & all_but_sign<T>;
    smallest = magnitude < smallest ? magnitude : smallest;
    largest = magnitude > largest ? magnitude : largest;
  }
  return smallest >= pattern_of(least) && largest <= pattern_of(std::numeric_limits<T>::max());
}

KINTSUGI_VECTORIZED ValueRange range_f32(const float* x, std::int64_t count) { return find_range(x, count); }
KINTSUGI_VECTORIZED ValueRange range_f64(const double* x, std::int64_t count) { return find_range(x, count); }
KINTSUGI_VECTORIZED void extend_f32(const float* x, std::int64_t count, Lanes<float>& ranges) {
  extend(x, count, ranges);
}
KINTSUGI_VECTORIZED void extend_f64(const double* x, std::int64_t count, Lanes<double>& ranges) {
  extend(x, count, ranges);
}
KINTSUGI_VECTORIZED bool are_at_least_f32(const float* x, std::int64_t count, float least) {
  return are_at_least(x, count, least);
}
KINTSUGI_VECTORIZED bool are_at_least_f64(const double* x, std::int64_t count, double least) {
  return are_at_least(x, count, least);
}
void extend_lanes(const float* x, std::int64_t count, Lanes<float>& ranges) { extend_f32(x, count, ranges); }
void extend_lanes(const double* x, std::int64_t count, Lanes<double>& ranges) {
  extend_f64(x, count, ranges);
}

// Extends the ranges of the rows of a column-major matrix. Reads `lanes` numbers of a column at a time.
template <class T>
void find_ranges_across(const MatrixView<const T>& matrix, ValueRange* ranges) {
  using Real = RealOf<T>;
  constexpr std::int64_t parts = parts_of<T>;
  for (std::int64_t first = 0; first < matrix.rows; first += lanes / parts) {
    const std::int64_t count = std::min(lanes / parts, matrix.rows - first);
    Lanes<Real> found;
    for (std::int64_t p = 0; p < matrix.columns; ++p)
      extend_lanes(reinterpret_cast<const Real*>(&matrix(first, p)), parts * count, found);
    for (std::int64_t l = 0; l < parts * count; ++l)
      ranges[first + l / parts] += as_range<Real>(found.below[l], found.largest[l]);
  }
}

}  // namespace

template <class T>
void find_ranges_of_rows(const MatrixView<const T>& matrix, ValueRange* ranges) {
  std::fill_n(ranges, matrix.rows, ValueRange{});
  if (matrix.column_stride != 1) return find_ranges_across(matrix, ranges);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    ranges[i] = range_of(reinterpret_cast<const RealOf<T>*>(&matrix(i, 0)), parts_of<T> * matrix.columns);
  }
}

template void find_ranges_of_rows(const MatrixView<const float>&, ValueRange*);
template void find_ranges_of_rows(const MatrixView<const double>&, ValueRange*);
template void find_ranges_of_rows(const MatrixView<const std::complex<float>>&, ValueRange*);
template void find_ranges_of_rows(const MatrixView<const std::complex<double>>&, ValueRange*);

ValueRange range_of(const float* x, std::int64_t count) { return range_f32(x, count); }
ValueRange range_of(const double* x, std::int64_t count) { return range_f64(x, count); }
bool all_at_least(const float* x, std::int64_t count, float least) {
  return are_at_least_f32(x, count, least);
}
bool all_at_least(const double* x, std::int64_t count, double least) {
  return are_at_least_f64(x, count, least);
}

}  // namespace kintsugi::core
