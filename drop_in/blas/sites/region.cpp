#include "region.hpp"

#include <algorithm>

namespace kintsugi::blas {

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

Region column_major(const void* data, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                    std::int64_t bytes) {
  return {static_cast<const char*>(data), columns, rows * bytes, std::max<std::int64_t>(ld, 1) * bytes};
}

bool is_zero(const Call& call, const void* scalar) {
  if (scalar == nullptr) return true;
  const bool has_real_beta = call.routine == Routine::herk || call.routine == Routine::her2k;
  const int parts = is_complex(call.type) && !has_real_beta ? 2 : 1;
  for (int part = 0; part < parts; ++part) {
    const double value = is_single(call.type) ? static_cast<double>(static_cast<const float*>(scalar)[part])
                                              : static_cast<const double*>(scalar)[part];
    if (value != 0) return false;
  }
  return true;
}

Region region_of_a(const Call& call, std::int64_t bytes) {
  if (has_side(call.routine)) {
    const std::int64_t order = order_of_a(call);
    return column_major(call.a, order, order, call.lda, bytes);
  }
  const bool is_plain = call.op_a == Op::n;
  return column_major(call.a, is_plain ? call.m : call.k, is_plain ? call.k : call.m, call.lda, bytes);
}

Region region_of_b(const Call& call, std::int64_t bytes) {
  if (has_diag(call.routine) || call.b == nullptr) return {};
  if (has_side(call.routine)) return column_major(call.b, call.m, call.n, call.ldb, bytes);
  if (!has_op_b(call.routine)) {  // syr2k and her2k: B has the shape and the op of A
    const bool is_plain = call.op_a == Op::n;
    return column_major(call.b, is_plain ? call.m : call.k, is_plain ? call.k : call.m, call.ldb, bytes);
  }
  const bool is_plain = call.op_b == Op::n;
  return column_major(call.b, is_plain ? call.k : call.n, is_plain ? call.n : call.k, call.ldb, bytes);
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

std::int64_t element_bytes(kintsugi_type type) {
  return (is_single(type) ? std::int64_t{4} : std::int64_t{8}) * (is_complex(type) ? 2 : 1);
}

std::vector<Region> inputs_of(const Call& written) {
  const Call call = as_column_major(written);
  const std::int64_t bytes = element_bytes(call.type);
  std::vector<Region> inputs;
  const bool multiplies = call.k > 0 || has_side(call.routine);
  if (multiplies) inputs = {region_of_a(call, bytes), region_of_b(call, bytes)};
  if (has_diag(call.routine) || !is_zero(call, call.beta)) inputs.push_back(output_of(written));
  return inputs;
}

Region output_of(const Call& written) {
  const Call call = as_column_major(written);
  return column_major(call.c, call.m, call.n, call.ldc, element_bytes(call.type));
}

}  // namespace kintsugi::blas
