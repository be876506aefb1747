#include "io/matrix.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/input_error.hpp"

namespace kintsugi::tools {

namespace {

// NaNs count as unchanged: their payload is cut, what they are is not.
void count(Rounded& rounded, double before, float after) {
  if (std::isnan(before) || static_cast<double>(after) == before) return;
  ++rounded.changed;
  if (std::isinf(after)) ++rounded.overflowed;
}

// Tiles of 32 x 32 keep both sides of a transposition in the first cache.
template <class T>
void copy_entries(const Matrix& from, Matrix& to) {
  constexpr std::int64_t tile = 32;
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
    fail(subject, "{} x {} entries of {} are {:.4g} bytes; this machine has {:.4g} bytes of memory", rows,
         columns, type_name(type, complex), bytes, physical_memory());
  }
}

Matrix make_matrix(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type,
                   Order order, bool complex) {
  require_memory(subject, rows, columns, type, complex);
  Matrix matrix{rows, columns, order, {}, complex};
  const auto entries = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * (complex ? 2 : 1);
  if (type == Type::float32) {
    matrix.values = std::vector<float>(entries);
  } else {
    matrix.values = std::vector<double>(entries);
  }
  return matrix;
}

Rounded convert(Matrix& matrix, Type type) {
  Rounded rounded;
  if (matrix.type() == type) return rounded;
  if (type == Type::float64) {
    const auto& from = std::get<std::vector<float>>(matrix.values);
    matrix.values = std::vector<double>(from.begin(), from.end());
    return rounded;
  }
  const auto from = std::move(std::get<std::vector<double>>(matrix.values));
  std::vector<float> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<float>(from[i]);
    count(rounded, from[i], to[i]);
  }
  matrix.values = std::move(to);
  return rounded;
}

void make_complex(Matrix& matrix) {
  if (matrix.complex) return;
  std::visit(
      [](auto& entries) {
        std::remove_reference_t<decltype(entries)> parts(2 * entries.size());
        for (std::size_t e = 0; e < entries.size(); ++e) parts[2 * e] = entries[e];
        entries = std::move(parts);
      },
      matrix.values);
  matrix.complex = true;
}

Matrix reordered(const Matrix& matrix, Order order) {
  if (matrix.order == order) return matrix;
  Matrix result = make_matrix("memory", matrix.rows, matrix.columns, matrix.type(), order, matrix.complex);
  with_entry_type(matrix, [&]<class T>() { copy_entries<T>(matrix, result); });
  return result;
}

}  // namespace kintsugi::tools
