// A dense matrix as the program reads, computes and writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace kintsugi::tools {

enum class Type : std::uint8_t { float32, float64 };
enum class Order : std::uint8_t { row_major, column_major };  // numpy's C and Fortran order

inline const char* type_name(Type type) { return type == Type::float32 ? "float32" : "float64"; }
inline std::size_t type_size(Type type) { return type == Type::float32 ? sizeof(float) : sizeof(double); }

template <class T>
inline constexpr Type type_of = std::is_same_v<T, float> ? Type::float32 : Type::float64;

// Contiguous: the leading dimension is the number of columns (row-major) or rows (column-major).
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Order order = Order::row_major;
  std::variant<std::vector<float>, std::vector<double>> values;

  Type type() const {
    return std::holds_alternative<std::vector<float>>(values) ? Type::float32 : Type::float64;
  }

  template <class T>
  T* data() {
    return std::get<std::vector<T>>(values).data();
  }
  template <class T>
  const T* data() const {
    return std::get<std::vector<T>>(values).data();
  }
  void* data() {
    return std::visit([](auto& entries) -> void* { return entries.data(); }, values);
  }
  const void* data() const {
    return std::visit([](const auto& entries) -> const void* { return entries.data(); }, values);
  }

  std::int64_t row_stride() const { return order == Order::row_major ? columns : 1; }
  std::int64_t column_stride() const { return order == Order::row_major ? 1 : rows; }
};

// Of this machine, in bytes. Linux grants more memory than there is and ends the program when it is touched, so
// sizes are compared with it before anything is allocated.
double physical_memory();

// Fails, naming the subject, where a matrix does not fit the memory of the machine.
void require_memory(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type);

// A matrix of zeros; fails as require_memory does.
Matrix make_matrix(const std::string& subject, std::int64_t rows, std::int64_t columns, Type type,
                   Order order);

// The number of entries of a matrix of type float64 that change when they are rounded to float32, and
// of those the finite ones that become infinite.
struct Rounded {
  std::int64_t changed = 0;
  std::int64_t overflowed = 0;
};

// To float32, each entry once to nearest (ties to even); to float64 nothing is lost.
Rounded convert(Matrix& matrix, Type type);

// The same entries in the other order.
Matrix reordered(const Matrix& matrix, Order order);

}  // namespace kintsugi::tools
