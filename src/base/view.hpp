// Views of matrices: address, shape and strides, without ownership.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

enum class MemorySpace : std::uint8_t { host, device };

// Types of elements in device memory.
enum class ElementType : std::uint8_t { f32, f64, c32, c64 };

constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : type == ElementType::c64 ? 16 : 8;
}

// Consecutive vectors of an operand, rows or columns of C, inner indices, or batch items.
struct Interval {
  std::int64_t first = 0;
  std::int64_t count = 0;

  std::int64_t end() const { return first + count; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A dense matrix with free strides; a transpose or another layout is the same data with other strides.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;     // elements from (i, j) to (i + 1, j)
  std::int64_t column_stride = 0;  // elements from (i, j) to (i, j + 1)
  MemorySpace space = MemorySpace::host;

  constexpr T& operator()(std::int64_t i, std::int64_t j) const {
    return data[i * row_stride + j * column_stride];
  }

  constexpr MatrixView transposed() const { return {data, columns, rows, column_stride, row_stride, space}; }

  constexpr MatrixView block(std::int64_t first_row, std::int64_t first_column, std::int64_t block_rows,
                             std::int64_t block_columns) const {
    return {data + first_row * row_stride + first_column * column_stride,
            block_rows,
            block_columns,
            row_stride,
            column_stride,
            space};
  }

  // View of `count` whole rows from `first` on; operands are viewed with their vectors as rows.
  constexpr MatrixView vectors(std::int64_t first, std::int64_t count) const {
    return block(first, 0, count, columns);
  }
};

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

}  // namespace kintsugi::core
