#include "call.hpp"

#include <algorithm>

#include "common/accuracy.hpp"

namespace kintsugi::cublas {

namespace {

// Returns the number of cudaDataType_t.
int data_type(kintsugi_type type) {
  switch (type) {
    case KINTSUGI_F32: return data_f32;
    case KINTSUGI_F64: return data_f64;
    case KINTSUGI_C32: return data_c32;
    default: return data_c64;
  }
}

// True if cuBLAS accepts the ops, the sizes and the leading dimensions.
bool has_valid_numbers(const Call& call) {
  const auto is_op = [](int op) { return op >= KINTSUGI_OP_N && op <= KINTSUGI_OP_C; };
  const auto is_ld = [](std::int64_t ld, std::int64_t rows) { return ld >= std::max<std::int64_t>(1, rows); };
  return is_op(call.op_a) && is_op(call.op_b) && call.m >= 0 && call.n >= 0 && call.k >= 0 &&
         call.count >= 0 && is_ld(call.lda, call.op_a == KINTSUGI_OP_N ? call.m : call.k) &&
         is_ld(call.ldb, call.op_b == KINTSUGI_OP_N ? call.k : call.n) && is_ld(call.ldc, call.m);
}

}  // namespace

CallType type_of_all(const MatrixTypes& types, kintsugi_type type) {
  const int wanted = data_type(type);
  if (types.a == wanted && types.b == wanted && types.c == wanted) return type;
  return Unsupported{.field = Field::types, .values = {types.a, types.b, types.c}};
}

CallType type_of(const MatrixTypes& types, int compute, int algorithm) {
  CallType found = type_of_all(types, KINTSUGI_F32);
  for (const kintsugi_type type : {KINTSUGI_F64, KINTSUGI_C32, KINTSUGI_C64})
    if (!found.type) found = type_of_all(types, type);
  if (!found.type) return found;
  if (compute != (drop_in::is_single(*found.type) ? compute_f32 : compute_f64))
    return Unsupported{.field = Field::compute_type, .values = {compute}};
  if (algorithm < default_algorithm || algorithm > max_algorithm)
    return Unsupported{.field = Field::algorithm, .values = {algorithm}};
  return found;
}

Call product(const CallType& type, int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const void* alpha, const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
             const void* beta, void* c, std::int64_t ldc) {
  return {.type = type.type,
          .unsupported = type.unsupported,
          .op_a = op_a,
          .op_b = op_b,
          .m = m,
          .n = n,
          .k = k,
          .alpha = alpha,
          .a = a,
          .lda = lda,
          .b = b,
          .ldb = ldb,
          .beta = beta,
          .c = c,
          .ldc = ldc};
}

Call strided(Call call, std::int64_t stride_a, std::int64_t stride_b, std::int64_t stride_c,
             std::int64_t count) {
  call.batch = BatchKind::strided;
  call.count = count;
  if (count == 1)
    return call;  // strides of 0, so that equal problems have one plan whatever strides they name
  call.stride_a = stride_a;
  call.stride_b = stride_b;
  call.stride_c = stride_c;
  return call;
}

Call by_pointers(Call call, std::int64_t count) {
  call.batch = BatchKind::pointers;
  call.count = count;
  return call;
}

const char* reason_to_forward(const Call& call) {
  if (!has_valid_numbers(call)) return "arguments that cuBLAS answers with a status";
  if (is_empty(call)) return "a size is 0";
  for (const void* pointer : {call.alpha, call.a, call.b, call.beta, static_cast<const void*>(call.c)})
    if (pointer == nullptr) return "a pointer is null";
  return nullptr;
}

bool is_empty(const Call& call) {
  const bool has_empty_size = call.m == 0 || call.n == 0 || call.k == 0 || call.count == 0;
  return has_empty_size && has_valid_numbers(call);
}

bool is_zero(const void* scalar, kintsugi_type type) {
  const auto all_zero = [&](const auto* parts) {
    return parts[0] == 0 && (!drop_in::is_complex(type) || parts[1] == 0);
  };
  return drop_in::is_single(type) ? all_zero(static_cast<const float*>(scalar))
                                  : all_zero(static_cast<const double*>(scalar));
}

const char* reason_in_math_mode(int math_mode, kintsugi_type type) {
  const int mode = math_mode & math_mode_mask;
  if (mode == pedantic_math) return "the handle's math mode is pedantic";
  if (!drop_in::is_single(type)) {
    const bool has_fixed_point = (math_mode & fixed_point_math_bit) != 0;
    return has_fixed_point ? "the handle's math mode is cuBLAS's emulation of FP64" : nullptr;
  }
  if (mode == tf32_math || mode == tensor_op_math) return "the handle's math mode allows TF32 or FP16";
  return (math_mode & bf16x9_math_bit) != 0 ? "the handle's math mode is cuBLAS's emulation of FP32"
                                            : nullptr;
}

}  // namespace kintsugi::cublas
