// Dense matrices that the program reads, computes and writes.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "tools/measure/generators/generators.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::tools {

// The library's double-double numbers: hi, then lo, 16 bytes.
using core::DoubleDouble;

enum class Type : std::uint8_t { float32, float64, double_double };
enum class Order : std::uint8_t { row_major, column_major };  // numpy's C and Fortran order

// These functions return numpy's name of a type and its size in bytes. `type`: type of the elements, or of
// their parts if they are complex.
inline const char* type_name(Type type, bool complex = false) {
  if (complex) return type == Type::float32 ? "complex64" : "complex128";
  if (type == Type::double_double) return "double-double";
  return type == Type::float32 ? "float32" : "float64";
}
inline std::size_t type_size(Type type, bool complex = false) {
  if (type == Type::double_double) return sizeof(DoubleDouble);
  return (complex ? 2 : 1) * (type == Type::float32 ? sizeof(float) : sizeof(double));
}

// PartOf<T>::type is the type of the parts of a complex T, else T.
template <class T>
struct PartOf {
  using type = T;
};

template <class T>
struct PartOf<std::complex<T>> {
  using type = T;
};

template <class T>
inline constexpr Type type_of = std::is_same_v<T, float>          ? Type::float32
                                : std::is_same_v<T, DoubleDouble> ? Type::double_double
                                                                  : Type::float64;

// A contiguous matrix. A complex element is two values, its real and its imaginary part. The leading
// dimension is the number of columns (row-major) or rows (column-major).
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Order order = Order::row_major;
  std::variant<std::vector<float>, std::vector<double>, std::vector<DoubleDouble>> values;
  bool complex = false;

  Type type() const { return static_cast<Type>(values.index()); }  // type of the parts, if complex

  const char* element_type_name() const { return type_name(type(), complex); }

  // T: type of the elements, or of their parts.
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(std::get<std::vector<typename PartOf<T>::type>>(values).data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(std::get<std::vector<typename PartOf<T>::type>>(values).data());
  }
  void* data() {
    return std::visit([](auto& elements) -> void* { return elements.data(); }, values);
  }
  const void* data() const {
    return std::visit([](const auto& elements) -> const void* { return elements.data(); }, values);
  }

  std::int64_t row_stride() const { return order == Order::row_major ? columns : 1; }
  std::int64_t column_stride() const { return order == Order::row_major ? 1 : rows; }
  template <class T>
  core::MatrixView<const T> view() const {
    return {data<T>(), rows, columns, row_stride(), column_stride()};
  }
};

// Returns the memory of this machine in bytes. Sizes are compared with it before anything is allocated, since
// Linux grants more memory than the machine has, and ends a program that uses too much.
double physical_memory();

// Fails with the subject in the message if a matrix does not fit in the machine's memory.
void require_memory(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type,
                    bool complex = false);

// Returns a matrix of zeros; fails as require_memory().
Matrix make_matrix(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type,
                   Order order, bool complex = false);

// Number of elements, or of parts of complex elements, that changed when they were rounded to a narrower
// type, and how many of them became infinite.
struct Rounded {
  std::int64_t changed = 0;
  std::int64_t overflowed = 0;
};

// Converts each element or its parts. A conversion to a narrower type rounds once, to nearest (ties to even);
// a conversion to a wider type is exact.
Rounded convert(Matrix& matrix, Type type);

// Returns the distribution of that text; fails, naming the flag, if there is none.
measure::Distribution parse_distribution(const std::string& flag, const std::string& text);

// Fills the matrix, op(A) or op(B) by `side`, with values of a distribution; real and imaginary parts have
// different seeds. Fails, naming the flag, if the type cannot hold the values.
void fill(Matrix& matrix, const std::string& flag, const measure::Distribution& distribution,
          measure::Side side, std::uint64_t seed);

// Adds imaginary parts of zero to the elements.
void make_complex(Matrix& matrix);

// Calls visit.template operator()<T>() with the type of the matrix's elements.
template <class Visit>
decltype(auto) with_element_type(const Matrix& matrix, Visit&& visit) {
  const bool is_single = matrix.type() == Type::float32;
  if (matrix.type() == Type::double_double) return visit.template operator()<DoubleDouble>();
  if (matrix.complex) {
    return is_single ? visit.template operator()<std::complex<float>>()
                     : visit.template operator()<std::complex<double>>();
  }
  return is_single ? visit.template operator()<float>() : visit.template operator()<double>();
}

// Returns the same elements in the other order.
Matrix reordered(const Matrix& matrix, Order order);

}  // namespace kintsugi::tools
