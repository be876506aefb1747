// A matrix product as the caller of cuBLAS wrote it, whatever the function's name and type of integers.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <optional>

#include "api.hpp"
#include "unsupported.hpp"

namespace kintsugi::cublas {

struct Site;

enum class BatchKind : std::uint8_t { single, strided, pointers };

struct Call {
  const Site* site = nullptr;         // nullptr without KINTSUGI_SITES
  std::optional<kintsugi_type> type;  // nothing: cuBLAS answers, since a field is not supported
  Unsupported unsupported = {};       // that field
  int op_a = 0, op_b = 0;             // cublasOperation_t, whose numbers are those of kintsugi_op
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;  // for BatchKind::pointers an array of pointers, like b and c
  std::int64_t lda = 0;
  const void* b = nullptr;
  std::int64_t ldb = 0;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 0;
  BatchKind batch = BatchKind::single;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // for BatchKind::strided
  std::int64_t count = 1;                                 // products of the batch
};

// Types of the matrices of a call, as cuBLAS numbers them.
struct MatrixTypes {
  int a, b, c;
};

// The type of a call's matrices, or the field for which the call is not supported.
struct CallType {
  CallType(kintsugi_type supported) : type(supported) {}
  CallType(const Unsupported& field) : unsupported(field) {}

  std::optional<kintsugi_type> type;
  Unsupported unsupported = {};
};

// Returns `type` if all matrices have it.
CallType type_of_all(const MatrixTypes& types, kintsugi_type type);

// Returns the type of the matrices if all have the same type of kintsugi_type, and if the compute type is
// that type's default. Returns a field if the caller has chosen another arithmetic, such as TF32 or a
// pedantic mode.
CallType type_of(const MatrixTypes& types, int compute, int algorithm);

// Returns the call of one product.
Call product(const CallType& type, int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const void* alpha, const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
             const void* beta, void* c, std::int64_t ldc);
// These return the batch of `count` such products, by strides or by arrays of pointers.
Call strided(Call call, std::int64_t stride_a, std::int64_t stride_b, std::int64_t stride_c,
             std::int64_t count);
Call by_pointers(Call call, std::int64_t count);

// Returns the reason why cuBLAS must answer a call with a type under all settings; nullptr: there is none.
// An argument that may be invalid is such a reason, so that the caller gets cuBLAS's own status.
const char* reason_to_forward(const Call& call);

// True if the arguments are valid and a size is 0.
bool is_empty(const Call& call);

// True if a scalar of that type in host memory is 0.
bool is_zero(const void* scalar, kintsugi_type type);

// Returns the reason why the handle's math mode leaves calls of this type to cuBLAS; nullptr: there is none.
const char* reason_in_math_mode(int math_mode, kintsugi_type type);

}  // namespace kintsugi::cublas
