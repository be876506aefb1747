// Pieces in which matrices are copied between host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/offload.hpp"

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
  StoredMatrix after(std::int64_t elements) const {
    StoredMatrix matrix = *this;
    matrix.data += elements * static_cast<std::int64_t>(element_bytes);
    return matrix;
  }
  std::size_t pitch() const { return static_cast<std::size_t>(ld) * element_bytes; }
};

// A part of a matrix that a strip holds contiguously. It begins at this row and column of the strip; earlier
// parts lie before it.
struct PartOfStrip {
  std::int64_t row, column;
  std::int64_t rows, columns;
};

// Returns the part in the strip's memory. `length`: length of the strip's longest line. Parts beside each
// other divide the memory of the lines; each part begins at a multiple of the lines' alignment.
StoredMatrix stored_in(const StoredMatrix& strip, const PartOfStrip& part, std::int64_t length);

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
  std::int64_t item = 0;  // batch item

  std::size_t bytes() const { return line_bytes * lines; }

  // Returns the distance of the lines in a chunk. Lines that are a few bytes apart on the device have the
  // same distance in the chunk, so that a single copy takes all lines. Copies of single lines of some
  // kilobytes halve the rate of the bus.
  std::size_t chunk_pitch() const {
    constexpr std::size_t max_padding = 256;
    return device_pitch - line_bytes < max_padding ? device_pitch : line_bytes;
  }
  bool is_one_line() const { return lines == 1 || chunk_pitch() == device_pitch; }
  std::size_t bytes_of_one_line() const { return chunk_pitch() * (lines - 1) + line_bytes; }
};

// Returns the pieces of these rows and columns of the host's matrix, each of at most `max_bytes` bytes, or
// one element. The device's matrix begins with the first of these elements.
std::vector<CopyPiece> cut_into_pieces(const StoredMatrix& host, const IndexRange& rows,
                                       const IndexRange& columns, const StoredMatrix& device,
                                       std::size_t max_bytes);

}  // namespace kintsugi::core
