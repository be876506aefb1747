#include "io/matrix.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/input_error.hpp"

namespace kintsugi::tools {

namespace {

// These functions return x exactly, in a form that can be compared. A double-double number is normalized.
double wide(double x) { return x; }
DoubleDouble wide(const DoubleDouble& x) { return core::normalized(x); }

// These functions return x rounded once, to nearest, to the type of the second argument. The value of the
// second argument is not used. For a double-double number and float, hi decides the result; if hi is halfway
// between two floats, lo decides.
float narrowed(double x, float) { return static_cast<float>(x); }
double narrowed(const DoubleDouble& x, double) { return wide(x).hi; }
float narrowed(const DoubleDouble& x, float) {
  const DoubleDouble number = wide(x);
  const auto nearest = static_cast<float>(number.hi);
  const double difference = number.hi - static_cast<double>(nearest);
  const bool lo_is_positive = number.lo > 0;
  if (number.lo == 0 || difference == 0 || std::isinf(nearest)) return nearest;
  const float next_nearest = std::nextafter(nearest, difference > 0 ? INFINITY : -INFINITY);
  const bool is_tie = static_cast<double>(next_nearest) - number.hi == difference;
  return is_tie && lo_is_positive == (difference > 0) ? next_nearest : nearest;
}

// Counts the element if rounding changed it. NaN counts as unchanged, although its payload is truncated.
template <class From, class To>
void count(Rounded& rounded, const From& before, To after) {
  if (std::isnan(core::leading_part(before)) || wide(before) == wide(after)) return;
  ++rounded.changed;
  if (std::isinf(after)) ++rounded.overflowed;
}

template <class From, class To>
Rounded convert_elements(Matrix& matrix) {
  Rounded rounded;
  const auto from = std::move(std::get<std::vector<From>>(matrix.values));
  if constexpr (sizeof(To) > sizeof(From)) {
    matrix.values = std::vector<To>(from.begin(), from.end());
  } else {
    std::vector<To> to(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i] = narrowed(from[i], To());
      count(rounded, from[i], to[i]);
    }
    matrix.values = std::move(to);
  }
  return rounded;
}

// Copies in tiles of 32 x 32, so that rows of one matrix and columns of the other stay in the L1 cache.
template <class T>
void copy_elements(const Matrix& from, Matrix& to) {
  constexpr std::int64_t tile = 32;
  // Strides differ, since the orders do.
  const T* source = from.data<T>();
  T* target = to.data<T>();
  for (std::int64_t i0 = 0; i0 < from.rows; i0 += tile) {
    for (std::int64_t j0 = 0; j0 < from.columns; j0 += tile) {
      for (std::int64_t i = i0; i < std::min(i0 + tile, from.rows); ++i) {
        for (std::int64_t j = j0; j < std::min(j0 + tile, from.columns); ++j) {
          target[i * to.row_stride() + j * to.column_stride()] =
              source[i * from.row_stride() + j * from.column_stride()];
        }
      }
    }
  }
}

}  // namespace

double physical_memory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void require_memory(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type,
                    bool complex) {
  const double bytes = static_cast<double>(rows) * static_cast<double>(columns) *
                       static_cast<double>(type_size(type, complex));
  if (bytes > physical_memory()) {
    fail(subject, "{} x {} elements of {} are {:.4g} bytes; this machine has {:.4g} bytes of memory", rows,
         columns, type_name(type, complex), bytes, physical_memory());
  }
}

Matrix make_matrix(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type,
                   Order order, bool complex) {
  require_memory(subject, rows, columns, type, complex);
  Matrix matrix{rows, columns, order, {}, complex};
  const auto elements =
      static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * (complex ? 2 : 1);
  switch (type) {
    case Type::float32: matrix.values = std::vector<float>(elements); break;
    case Type::float64: matrix.values = std::vector<double>(elements); break;
    case Type::double_double: matrix.values = std::vector<DoubleDouble>(elements); break;
  }
  return matrix;
}

Rounded convert(Matrix& matrix, Type type) {
  const auto convert_to = [&]<class To>() -> Rounded {
    return std::visit(
        [&]<class From>(const std::vector<From>&) -> Rounded {
          if constexpr (std::is_same_v<From, To>) {
            return {};
          } else {
            return convert_elements<From, To>(matrix);
          }
        },
        matrix.values);
  };
  switch (type) {
    case Type::float32: return convert_to.operator()<float>();
    case Type::float64: return convert_to.operator()<double>();
    case Type::double_double: break;
  }
  return convert_to.operator()<DoubleDouble>();
}

measure::Distribution parse_distribution(const std::string& flag, const std::string& text) try {
  return measure::parse_distribution(text);
} catch (const std::runtime_error& error) {
  fail(flag, "{}", error.what());
}

void fill(Matrix& matrix, const std::string& flag, const measure::Distribution& distribution,
          measure::Side side, std::uint64_t seed) try {
  const std::int64_t parts = matrix.complex ? 2 : 1;
  std::visit(
      [&]<class T>(std::vector<T>& values) {
        for (std::int64_t part = 0; part < parts; ++part)
          measure::fill(distribution, side, part == 0 ? seed : ~seed,
                        core::MatrixView<T>{values.data() + part, matrix.rows, matrix.columns,
                                            parts * matrix.row_stride(), parts * matrix.column_stride()});
      },
      matrix.values);
} catch (const std::runtime_error& error) {
  fail(flag, "{}", error.what());
}

void make_complex(Matrix& matrix) {
  if (matrix.complex) return;
  std::visit(
      [](auto& elements) {
        std::remove_reference_t<decltype(elements)> parts(2 * elements.size());
        for (std::size_t e = 0; e < elements.size(); ++e) parts[2 * e] = elements[e];
        elements = std::move(parts);
      },
      matrix.values);
  matrix.complex = true;
}

Matrix reordered(const Matrix& matrix, Order order) {
  if (matrix.order == order) return matrix;
  Matrix result = make_matrix("memory", matrix.rows, matrix.columns, matrix.type(), order, matrix.complex);
  with_element_type(matrix, [&]<class T>() { copy_elements<T>(matrix, result); });
  return result;
}

}  // namespace kintsugi::tools
