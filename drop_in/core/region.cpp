#include "region.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

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

struct Matrix {
  const void* data;
  std::int64_t rows, columns, ld, stride;  // stride: distance of two matrices of a batch, in elements
};

Region region_of(const Call& call, const Matrix& matrix) {
  if (!call.is_supported || call.batch == BatchKind::pointers || matrix.data == nullptr) return {};
  const std::int64_t bytes = element_bytes(call.type);
  const auto columns = [&](std::int64_t count) -> Region {
    return {static_cast<const char*>(matrix.data), count, matrix.rows * bytes,
            std::max<std::int64_t>(matrix.ld, 1) * bytes};
  };
  if (call.batch == BatchKind::single || call.count == 1 || matrix.stride == 0)
    return columns(matrix.columns);
  if (matrix.stride == matrix.ld * matrix.columns) return columns(matrix.columns * call.count);
  if (matrix.rows <= 0 || matrix.columns <= 0 || call.count <= 0) return {};
  const std::int64_t distance = matrix.stride * (call.count - 1);
  const std::int64_t length = matrix.ld * (matrix.columns - 1) + matrix.rows;
  const char* const first =
      static_cast<const char*>(matrix.data) + std::min<std::int64_t>(distance, 0) * bytes;
  const std::int64_t whole = (std::abs(distance) + length) * bytes;
  return {.first = first, .lines = 1, .line_bytes = whole, .stride = whole};
}

Region region_of_a(const Call& call) {
  Matrix a{call.a, call.m, call.k, call.lda, call.stride_a};
  if (has_side(call.routine))
    a.rows = a.columns = order_of_a(call);
  else if (call.op_a != Op::n)
    std::swap(a.rows, a.columns);
  return region_of(call, a);
}

Region region_of_b(const Call& call) {
  Matrix b{call.b, call.k, call.n, call.ldb, call.stride_b};
  const bool is_like_a = !has_side(call.routine) && !has_op_b(call.routine);  // syr2k and her2k
  if (has_side(call.routine))
    b.rows = call.m;
  else if ((is_like_a ? call.op_a == Op::n : call.op_b != Op::n))
    std::swap(b.rows, b.columns);
  return region_of(call, b);
}

}  // namespace

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

std::vector<Region> inputs_of(const Call& written, bool reads_c) {
  const Call call = as_column_major(written);
  std::vector<Region> inputs;
  if (call.k > 0 || has_side(call.routine)) inputs = {region_of_a(call), region_of_b(call)};
  if (reads_c) inputs.push_back(output_of(written));
  return inputs;
}

Region output_of(const Call& written) {
  const Call call = as_column_major(written);
  return region_of(call, {call.c, call.m, call.n, call.ldc, call.stride_c});
}

bool reads_c(const Call& call) {
  if (has_diag(call.routine)) return true;
  const bool has_real_beta = writes_triangle(call.routine) && is_hermitian(call.routine);
  return call.beta != nullptr && !is_zero(call.beta, has_real_beta ? real_type(call.type) : call.type);
}

std::vector<char> packed(const Region& region) {
  if (region.is_empty()) return {};
  std::vector<char> lines(static_cast<std::size_t>(region.lines * region.line_bytes));
  for (std::int64_t line = 0; line < region.lines; ++line)
    std::memcpy(lines.data() + line * region.line_bytes, region.first + line * region.stride,
                static_cast<std::size_t>(region.line_bytes));
  return lines;
}

void unpack(const std::vector<char>& lines, const Region& region) {
  if (region.is_empty()) return;
  for (std::int64_t line = 0; line < region.lines; ++line)
    std::memcpy(const_cast<char*>(region.first) + line * region.stride,
                lines.data() + line * region.line_bytes, static_cast<std::size_t>(region.line_bytes));
}

}  // namespace kintsugi::drop_in
