#include "region.hpp"

namespace kintsugi::blas {

using drop_in::column_major;

namespace {

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
