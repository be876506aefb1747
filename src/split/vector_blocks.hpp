// Order in which host loops visit the elements of an operand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::core {

// Number of vectors that are processed together. If vectors are interleaved in memory, whole cache lines (16
// floats) are read.
inline constexpr std::int64_t vectors_per_block = 16;

// Interleaved vectors whose largest magnitudes are found together. Four neighbouring lines of each inner
// index are read: strides are often powers of two, of which the caches hold few single lines.
inline constexpr std::int64_t vectors_per_strip = 64;

// True for views whose loops over numbers are vectorised.
template <class View>
inline constexpr bool has_numbers = !std::is_same_v<View, MatrixView<const DoubleDouble>>;

// The numbers of an operand as real vectors, for what depends neither on signs nor on their order along k.
template <class T>
struct NumberVectors {
  MatrixView<const T> vectors;
  std::int64_t
      each;  // real vectors that together have the numbers of one of the operand's; 0: there are none
};

template <class T>
NumberVectors<T> numbers_of(const MatrixView<const T>& operand) {
  return {operand, 1};
}

// Both parts of a complex vector's elements are in one real vector if the elements are neighbours, and in
// two if vectors are.
template <class T>
NumberVectors<T> numbers_of(const EmbeddedView<T>& operand) {
  const auto& matrix = operand.matrix;
  const T* const numbers = reinterpret_cast<const T*>(matrix.data);
  if (matrix.column_stride == 1)
    return {{numbers, matrix.rows, 2 * matrix.columns, 2 * matrix.row_stride, 1}, 1};
  if (matrix.row_stride == 1)
    return {{numbers, 2 * matrix.rows, matrix.columns, 1, 2 * matrix.column_stride}, 2};
  return {{}, 0};
}

// Embedded vectors of one of the operand's.
template <class T>
std::int64_t embedded_each(const MatrixView<const T>&) {
  return 1;
}
template <class T>
std::int64_t embedded_each(const EmbeddedView<T>& operand) {
  return operand.right ? 2 : 1;
}

// Vectors of a block: a strip of interleaved ones, as far as that leaves a block for each thread.
template <class View>
std::int64_t vectors_at_once(const View& operand, int threads) {
  if constexpr (has_numbers<View>) {
    const auto numbers = numbers_of(operand);
    const bool fills_threads = operand.rows >= vectors_per_strip * threads;
    if (numbers.each > 0 && numbers.vectors.row_stride == 1 && fills_threads)
      return vectors_per_strip / numbers.each * embedded_each(operand);
  }
  return vectors_per_block;
}

// Calls visit(first, count) for groups of at most vectors_per_strip / each of an operand's vectors first ...
// last - 1; of the two embedded vectors of a complex column only the even one counts. `embedded`: 2 where
// there are two.
template <class Visit>
void for_each_group(std::int64_t first, std::int64_t last, std::int64_t each, std::int64_t embedded,
                    const Visit& visit) {
  const std::int64_t most = vectors_per_strip / each;
  for (std::int64_t v = first / embedded; v < last / embedded; v += most)
    visit(v, std::min(most, last / embedded - v));
}

// Prefetches the elements of `count` interleaved vectors, `rows_ahead` inner indices before they are
// read: their lines are too far apart for a CPU to do so by itself. The address may be beyond the
// operand.
inline constexpr std::int64_t rows_ahead = 16;
template <class T>
[[gnu::always_inline]] inline void prefetch_row(const T* row, std::int64_t count) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t v = 0; v < count; v += line) __builtin_prefetch(row + v);
}

// Calls visit(first, last) for each block of `each` of `vectors` vectors first ... last - 1, in parallel.
template <class Visit>
void for_each_vector_block(std::int64_t vectors, int threads, const Visit& visit,
                           std::int64_t each = vectors_per_block) {
  const std::int64_t blocks = divide_up(vectors, each);
  const int workers = workers_for(blocks, threads);
  const auto visit_block = [&](std::int64_t block) {
    const FloatingEnvironment environment;
    visit(block * each, std::min(vectors, (block + 1) * each));
  };
  // One thread makes no team: even its barrier is a system call of GNU OpenMP, of 0.1 us.
  if (workers == 1) {
    for (std::int64_t block = 0; block < blocks; ++block) visit_block(block);
    return;
  }
#pragma omp parallel for num_threads(workers) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) visit_block(block);
}

// Returns x; returns 0 for NaN and infinities, which slices cannot represent.
template <class T>
double finite_or_zero(T x) {
  return x - x == T(0) ? static_cast<double>(x) : 0.0;
}
// Rounds a double-double number towards zero. Only lower bounds of magnitudes use this function.
inline double finite_or_zero(const DoubleDouble& x) {
  return is_finite(leading_part(x)) ? truncated(x) : 0.0;
}

// Like finite_or_zero(), but rounds double-double numbers away from zero, for upper bounds of magnitudes.
// Numbers beyond the largest double become the largest double; this is harmless, since the bounds round up
// what they read.
template <class T>
double finite_above(T x) {
  return finite_or_zero(x);
}
inline double finite_above(const DoubleDouble& x) {
  return is_finite(leading_part(x)) ? away_from_zero(x) : 0.0;
}

// Loads elements begin ... end - 1 of a vector, multiplied by the factors of their inner indices if there are
// factors.
template <class View>
void load_elements(const View& operand, std::span<const double> inner_factors, std::int64_t v,
                   std::int64_t begin, std::int64_t end, double* elements) {
  for (std::int64_t p = begin; p < end; ++p) elements[p - begin] = finite_or_zero(operand(v, p));
  if (inner_factors.empty()) return;
  for (std::int64_t p = begin; p < end; ++p) elements[p - begin] *= inner_factors[p];
}

// Like load_elements() above, for double-double numbers. High and low words go to separate arrays.
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

// Returns the distance in memory between consecutive elements of a vector, in elements of the caller's
// matrix.
template <class T>
std::int64_t element_stride(const MatrixView<T>& operand) {
  return operand.column_stride;
}
template <class T>
std::int64_t element_stride(const EmbeddedView<T>& operand) {
  return operand.matrix.column_stride;
}

// Returns all vectors of the operand from inner index `first` on, which is even.
template <class T>
MatrixView<T> inner_part(const MatrixView<T>& operand, std::int64_t first, std::int64_t count) {
  return operand.block(0, first, operand.rows, count);
}
template <class T>
EmbeddedView<T> inner_part(const EmbeddedView<T>& operand, std::int64_t first, std::int64_t count) {
  const auto& matrix = operand.matrix;
  return {matrix.block(0, first / 2, matrix.rows, count / 2), operand.right, operand.conjugated};
}

// Calls visit(v, p, operand(v, p)) for vectors first...last - 1 and all p. For each v, p ascends.
template <class View, class Visit>
void for_each_element(const View& operand, std::int64_t first, std::int64_t last, Visit&& visit) {
  // If the stride is a power of two, all elements of a vector are in one set of the L1 cache, which holds
  // eight lines. Therefore at most eight inner indices are visited before the next vector.
  const std::int64_t chunk = element_stride(operand) == 1 ? 64 : 8;
  for (std::int64_t begin = 0; begin < operand.columns; begin += chunk) {
    const std::int64_t end = std::min(operand.columns, begin + chunk);
    for (std::int64_t v = first; v < last; ++v) {
      for (std::int64_t p = begin; p < end; ++p) visit(v, p, operand(v, p));
    }
  }
}

}  // namespace kintsugi::core
