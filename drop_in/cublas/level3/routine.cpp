#include "routine.hpp"

#include <algorithm>

#include "common/accuracy.hpp"
#include "cublas/call.hpp"

namespace kintsugi::cublas {

namespace {

bool is_ld(std::int64_t ld, std::int64_t rows) { return ld >= std::max<std::int64_t>(1, rows); }

// True if every version of cuBLAS accepts the op for the routine. (Some versions also accept op = C for real
// matrices.)
bool has_valid_op(const RoutineCall& call) {
  const bool is_complex = drop_in::is_complex(call.type);
  switch (call.routine) {
    case Routine::syrk: return call.op == KINTSUGI_OP_N || call.op == KINTSUGI_OP_T;
    case Routine::herk: return call.op == KINTSUGI_OP_N || call.op == KINTSUGI_OP_C;
    case Routine::trsm:
      return call.op >= KINTSUGI_OP_N && call.op <= (is_complex ? KINTSUGI_OP_C : KINTSUGI_OP_T);
    default: return true;
  }
}

bool has_valid_modes(const RoutineCall& call) {
  return has_valid_op(call) && (call.side == side_left || call.side == side_right) &&
         (call.uplo == fill_lower || call.uplo == fill_upper) &&
         (call.diag == diagonal_not_unit || call.diag == diagonal_unit);
}

// Returns the number of rows of A as stored.
std::int64_t rows_of_a(const RoutineCall& call) {
  if (!call.is_update()) return call.order();
  return call.op == KINTSUGI_OP_N ? call.n : call.k;
}

bool has_valid_sizes(const RoutineCall& call) {
  const bool has_b = call.routine == Routine::symm || call.routine == Routine::hemm;
  return call.m >= 0 && call.n >= 0 && call.k >= 0 && is_ld(call.lda, rows_of_a(call)) &&
         is_ld(call.ldc, call.m) && (!has_b || is_ld(call.ldb, call.m));
}

std::size_t element_bytes(kintsugi_type type) {
  return (drop_in::is_single(type) ? std::size_t{4} : std::size_t{8}) *
         (drop_in::is_complex(type) ? std::size_t{2} : std::size_t{1});
}

std::ptrdiff_t offset_of(kintsugi_type type, std::int64_t ld, std::int64_t i, std::int64_t j) {
  return static_cast<std::ptrdiff_t>(i + j * ld) * static_cast<std::ptrdiff_t>(element_bytes(type));
}

}  // namespace

kintsugi_type scalar_type(const RoutineCall& call) {
  if (call.routine != Routine::herk) return call.type;
  return drop_in::is_single(call.type) ? KINTSUGI_F32 : KINTSUGI_F64;
}

const char* reason_to_forward(const RoutineCall& call) {
  if (!has_valid_modes(call) || !has_valid_sizes(call)) return "arguments that cuBLAS answers with a status";
  if (call.m == 0 || call.n == 0 || (call.is_update() && call.k == 0)) return "a size is 0";
  const bool has_b = call.routine == Routine::symm || call.routine == Routine::hemm;
  const bool lacks_one = call.alpha == nullptr || call.a == nullptr || call.c == nullptr ||
                         (has_b && call.b == nullptr) || (!call.is_solve() && call.beta == nullptr);
  return lacks_one ? "a pointer is null" : nullptr;
}

// Accepts scalars in device memory only for syrk, whose products use nothing but the caller's alpha and beta.
// Products of the other routines also use StepScalars, which are in host memory, and a call of cuBLAS takes
// both scalars from the same memory.
const char* reason_in_scalars(const RoutineCall& call, int pointer_mode) {
  if (pointer_mode != KINTSUGI_SCALARS_ON_HOST)
    return call.routine == Routine::syrk ? nullptr : "scalars of this routine are in device memory";
  return is_zero(call.alpha, scalar_type(call)) ? "alpha is 0" : nullptr;
}

const void* element_of(const void* matrix, kintsugi_type type, std::int64_t ld, std::int64_t i,
                       std::int64_t j) {
  return static_cast<const char*>(matrix) + offset_of(type, ld, i, j);
}
void* element_of(void* matrix, kintsugi_type type, std::int64_t ld, std::int64_t i, std::int64_t j) {
  return static_cast<char*>(matrix) + offset_of(type, ld, i, j);
}

}  // namespace kintsugi::cublas
