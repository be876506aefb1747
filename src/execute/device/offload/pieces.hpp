// Pieces in which matrices are copied between host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/offload/steps.hpp"

namespace kintsugi::core {

// A matrix with contiguous lines (rows or columns) that are `ld` elements apart. The rows of an operand are
// its vectors; the columns are the inner indices.
struct StoredMatrix {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  bool rows_are_lines = false;
  std::size_t element_bytes = 0;

  std::byte* at(std::int64_t row, std::int64_t column) const {
    const std::int64_t index = rows_are_lines ? row * ld + column : column * ld + row;
    return data + index * static_cast<std::int64_t>(element_bytes);
  }
  std::size_t pitch() const { return static_cast<std::size_t>(ld) * element_bytes; }
};

// Part of a matrix that one copy takes.
struct CopyPiece {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  std::size_t host_pitch = 0;
  std::size_t device_pitch = 0;
  std::size_t line_bytes = 0;
  std::size_t lines = 0;
  IndexRange rows;  // rows of the host's matrix
  IndexRange columns;

  std::size_t bytes() const { return line_bytes * lines; }
};

// Cuts the given rows and columns of the host's matrix into pieces. A piece has at most `max_bytes` bytes,
// but at least one element. `row`, `column`: position of the first element in the device's matrix.
std::vector<CopyPiece> cut_into_pieces(const StoredMatrix& host, const IndexRange& rows,
                                       const IndexRange& columns, const StoredMatrix& device,
                                       std::int64_t row, std::int64_t column, std::size_t max_bytes);

}  // namespace kintsugi::core
