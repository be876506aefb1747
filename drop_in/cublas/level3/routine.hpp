// A call of a level-3 routine that can be divided into products, with the caller's arguments.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstddef>
#include <cstdint>

namespace kintsugi::cublas {

enum class Routine : std::uint8_t { syrk, herk, symm, hemm, trsm };

// Numbers of cublasSideMode_t, cublasFillMode_t and cublasDiagType_t.
inline constexpr int side_left = 0, side_right = 1;
inline constexpr int fill_lower = 0, fill_upper = 1;
inline constexpr int diagonal_not_unit = 0, diagonal_unit = 1;

// Arguments, named as in cuBLAS's reference. Arguments that a routine does not have keep their defaults.
struct RoutineCall {
  Routine routine;
  kintsugi_type type;
  int side = side_left;
  int uplo = fill_lower;
  int op = KINTSUGI_OP_N;
  int diag = diagonal_not_unit;
  std::int64_t m = 0, n = 0;  // rows and columns of `c`; m = n for syrk and herk
  std::int64_t k = 0;         // for syrk and herk
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 0;
  const void* b = nullptr;  // for symm and hemm
  std::int64_t ldb = 0;
  const void* beta = nullptr;  // for all routines but trsm
  void* c = nullptr;           // the matrix that is written; for trsm the caller's B
  std::int64_t ldc = 0;

  // syrk and herk add a product to one triangle of C.
  bool is_update() const { return routine == Routine::syrk || routine == Routine::herk; }
  bool is_solve() const { return routine == Routine::trsm; }
  bool is_on_left() const { return side == side_left; }
  // Returns the order of the matrix of which one triangle is given: C of an update, else A.
  std::int64_t order() const { return !is_update() && is_on_left() ? m : n; }
};

// Returns the type of alpha and beta: a real one for herk, else that of the matrices.
kintsugi_type scalar_type(const RoutineCall& call);

// Returns the reason why cuBLAS must answer the call under all settings; nullptr: there is none. An argument
// that may be invalid is such a reason, so that the caller gets cuBLAS's own status.
const char* reason_to_forward(const RoutineCall& call);

// Returns the reason why alpha, beta or their memory (host or device) leave the call to cuBLAS; nullptr:
// there is none.
const char* reason_in_scalars(const RoutineCall& call, int pointer_mode);

// These return the address of element (i, j) of a column-major matrix of that type.
const void* element_of(const void* matrix, kintsugi_type type, std::int64_t ld, std::int64_t i,
                       std::int64_t j);
void* element_of(void* matrix, kintsugi_type type, std::int64_t ld, std::int64_t i, std::int64_t j);

}  // namespace kintsugi::cublas
