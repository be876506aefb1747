#include "region.hpp"

#include <algorithm>

namespace kintsugi::drop_in {

namespace {

// True if `one` has a line j + shift for a line j of `other`.
bool lines_meet(const Region& one, const Region& other, std::int64_t shift) {
  return std::max<std::int64_t>(0, -shift) < std::min(other.lines, one.lines - shift);
}

// A position relative to a region: byte `byte` behind the beginning of line `line`, with 0 <= byte < stride.
struct Position {
  std::int64_t line, byte;
};
// Returns the position, relative to `one`, at which `other` begins. The line may be negative.
Position position_in(const Region& one, const Region& other) {
  const std::int64_t distance = other.first - one.first;
  std::int64_t line = distance / one.stride;
  if (line * one.stride > distance) --line;
  return {line, distance - line * one.stride};
}

const char* end_of(const Region& region) {
  return region.first + (region.lines - 1) * region.stride + region.line_bytes;
}

}  // namespace

Region column_major(const void* data, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                    std::int64_t bytes) {
  return {static_cast<const char*>(data), columns, rows * bytes, std::max<std::int64_t>(ld, 1) * bytes};
}

bool overlap(const Region& one, const Region& other) {
  if (one.is_empty() || other.is_empty()) return false;
  if (one.first >= end_of(other) || other.first >= end_of(one)) return false;
  if (one.stride != other.stride) return true;
  // Line j of `other` begins in line j + begin.line of `one`, and may reach into the line after it.
  const Position begin = position_in(one, other);
  if (begin.byte < one.line_bytes && lines_meet(one, other, begin.line)) return true;
  return begin.byte + other.line_bytes > one.stride && lines_meet(one, other, begin.line + 1);
}

bool covers(const Region& outer, const Region& inner) {
  if (inner.is_empty()) return true;
  if (outer.is_empty()) return false;
  const bool is_contiguous = outer.lines == 1 || outer.stride == outer.line_bytes;
  if (is_contiguous) return inner.first >= outer.first && end_of(inner) <= end_of(outer);
  if (outer.stride != inner.stride) return false;
  const Position begin = position_in(outer, inner);
  return begin.byte + inner.line_bytes <= outer.line_bytes && begin.line >= 0 &&
         begin.line + inner.lines <= outer.lines;
}

}  // namespace kintsugi::drop_in
