#include "execute/device/offload/pieces.hpp"

#include <algorithm>

namespace kintsugi::core {

namespace {

// Cuts a range into parts of at most `count` indices.
std::vector<IndexRange> parts_of_range(const IndexRange& range, std::int64_t count) {
  std::vector<IndexRange> parts;
  for (std::int64_t first = range.first; first < range.end(); first += count)
    parts.push_back({first, std::min(count, range.end() - first)});
  return parts;
}

}  // namespace

StoredMatrix stored_in(const StoredMatrix& strip, const PartOfStrip& part, std::int64_t length) {
  const bool rows_are_lines = strip.rows_are_lines;
  const std::int64_t before = rows_are_lines ? part.row * strip_pitch(length) + part.column * part.rows
                                             : part.column * strip_pitch(length) + part.row * part.columns;
  StoredMatrix stored = strip.after(before);
  stored.ld = strip_pitch(rows_are_lines ? part.columns : part.rows);
  return stored;
}

std::vector<CopyPiece> cut_into_pieces(const StoredMatrix& host, const IndexRange& rows,
                                       const IndexRange& columns, const StoredMatrix& device,
                                       std::size_t max_bytes) {
  const IndexRange& lines = host.rows_are_lines ? rows : columns;
  const IndexRange& along = host.rows_are_lines ? columns : rows;
  const auto max_elements =
      std::max<std::int64_t>(static_cast<std::int64_t>(max_bytes / host.element_bytes), 1);
  const std::int64_t length = std::min(along.count, max_elements);
  const std::int64_t lines_of_piece =
      std::max<std::int64_t>(max_elements / std::max<std::int64_t>(strip_pitch(length), 1), 1);
  std::vector<CopyPiece> pieces;
  for (const IndexRange& some_lines : parts_of_range(lines, lines_of_piece)) {
    for (const IndexRange& part : parts_of_range(along, std::max<std::int64_t>(length, 1))) {
      const IndexRange piece_rows = host.rows_are_lines ? some_lines : part;
      const IndexRange piece_columns = host.rows_are_lines ? part : some_lines;
      pieces.push_back(
          {.host = host.at(piece_rows.first, piece_columns.first),
           .device = device.at(piece_rows.first - rows.first, piece_columns.first - columns.first),
           .host_pitch = host.pitch(),
           .device_pitch = device.pitch(),
           .line_bytes = static_cast<std::size_t>(part.count) * host.element_bytes,
           .lines = static_cast<std::size_t>(some_lines.count),
           .rows = piece_rows,
           .columns = piece_columns});
    }
  }
  return pieces;
}

}  // namespace kintsugi::core
