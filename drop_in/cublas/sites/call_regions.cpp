#include "call_regions.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "common/accuracy.hpp"

namespace kintsugi::cublas {

namespace {

struct Matrix {
  const void* data;
  std::int64_t rows, columns, ld, stride;  // stride: distance of two matrices of a batch, in elements
};

drop_in::Region region_of(const Call& call, const Matrix& matrix) {
  if (!call.type || call.batch == BatchKind::pointers) return {};
  const std::int64_t bytes =
      (drop_in::is_single(*call.type) ? 4 : 8) * (drop_in::is_complex(*call.type) ? 2 : 1);
  const bool is_one = call.batch == BatchKind::single || call.count == 1 || matrix.stride == 0;
  if (is_one) return drop_in::column_major(matrix.data, matrix.rows, matrix.columns, matrix.ld, bytes);
  if (matrix.stride == matrix.ld * matrix.columns)
    return drop_in::column_major(matrix.data, matrix.rows, matrix.columns * call.count, matrix.ld, bytes);
  if (matrix.rows <= 0 || matrix.columns <= 0 || call.count <= 0) return {};
  const std::int64_t distance = matrix.stride * (call.count - 1);
  const std::int64_t length = matrix.ld * (matrix.columns - 1) + matrix.rows;
  const char* const first =
      static_cast<const char*>(matrix.data) + std::min<std::int64_t>(distance, 0) * bytes;
  const std::int64_t whole = (std::abs(distance) + length) * bytes;
  return {.first = first, .lines = 1, .line_bytes = whole, .stride = whole};
}

}  // namespace

std::vector<drop_in::Region> inputs_of(const Call& call, bool reads_c) {
  std::vector<drop_in::Region> inputs;
  if (call.k > 0) {
    const bool a_is_plain = call.op_a == KINTSUGI_OP_N, b_is_plain = call.op_b == KINTSUGI_OP_N;
    inputs = {region_of(call, {call.a, a_is_plain ? call.m : call.k, a_is_plain ? call.k : call.m, call.lda,
                               call.stride_a}),
              region_of(call, {call.b, b_is_plain ? call.k : call.n, b_is_plain ? call.n : call.k, call.ldb,
                               call.stride_b})};
  }
  if (reads_c) inputs.push_back(output_of(call));
  return inputs;
}

drop_in::Region output_of(const Call& call) {
  return region_of(call, {call.c, call.m, call.n, call.ldc, call.stride_c});
}

}  // namespace kintsugi::cublas
