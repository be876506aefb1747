// A call of a routine of BLAS or cuBLAS, whatever its name, its convention and its type of integers.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <vector>

namespace kintsugi::drop_in {

// gemmtr is counted as gemmt, gemm3m as gemm, geru and gerc as ger, dotu and dotc as dot. Routines with
// vectors, gemv and those behind it, are answered as the product that product_of_vectors() returns.
// clang-format off
enum class Routine : std::uint8_t {
  gemm, gemmt, syrk, herk, syr2k, her2k, syrkx, herkx, symm, hemm, trmm, trsm,
  gemv, symv, hemv, ger, dot, dsdot, sdsdot
};
// clang-format on

// The enumerators of the following types have the order of CBLAS's numbers, but for Layout. `conjugate_only`
// is conjugation without transposition ('R', CblasConjNoTrans, CUBLAS_OP_CONJG), an extension of OpenBLAS.
enum class Op : std::uint8_t {
  n = KINTSUGI_OP_N,
  t = KINTSUGI_OP_T,
  c = KINTSUGI_OP_C,
  conjugate_only,
  invalid
};
enum class Layout : std::uint8_t { column_major, row_major, invalid };
enum class Side : std::uint8_t { left, right, invalid };
enum class Uplo : std::uint8_t { upper, lower, invalid };
enum class Diag : std::uint8_t { non_unit, unit, invalid };
enum class BatchKind : std::uint8_t { single, strided, pointers };

struct Site;

// Arguments of a call. Members that the routine lacks keep their defaults. For routines that write a triangle
// of C, m = n; for routines with a side, k is the order of A. `c` is the matrix that the routine writes: for
// trsm and BLAS's trmm the caller's B. alpha and beta have the type of the matrices, except that alpha of
// herk and beta of herk, her2k and herkx are real. syrkx and herkx, which only cuBLAS has, are syrk and herk
// with B in the place of the second A. The matrices of a BLAS batch are calls of their own. Vectors stand in
// the place of matrices, with the increment as leading dimension: x and y of gemv, symv and hemv are b and c,
// those of ger and dot a and b. The matrix of ger is c; op_b of ger and op_a of dot say if y or x is
// conjugated. n is the length of the vectors of dot. The vectors of dsdot and sdsdot are FP32; beta of sdsdot
// is the number that it adds.
struct Call {
  Routine routine = Routine::gemm;
  Layout layout = Layout::column_major;
  Side side = Side::left;
  Uplo uplo = Uplo::lower;
  Op op_a = Op::n, op_b = Op::n;
  Diag diag = Diag::non_unit;
  BatchKind batch = BatchKind::single;
  kintsugi_type type = KINTSUGI_F64;
  bool is_supported = true;  // false: cuBLAS answers, since types or attributes are none of Kintsugi's
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;  // for BatchKind::pointers an array of pointers, like b and c
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // for BatchKind::strided, in elements
  std::int64_t count = 1;                                 // products of the batch
  const Site* site = nullptr;                             // the call site; nullptr without KINTSUGI_SITES
};

constexpr bool is_single(kintsugi_type type) { return type == KINTSUGI_F32 || type == KINTSUGI_C32; }
constexpr bool is_complex(kintsugi_type type) { return type == KINTSUGI_C32 || type == KINTSUGI_C64; }
constexpr std::int64_t element_bytes(kintsugi_type type) {
  return (is_single(type) ? 4 : 8) * (is_complex(type) ? 2 : 1);
}
// Returns the column-major call of one product.
Call product(kintsugi_type type, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const void* alpha, const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
             const void* beta, void* c, std::int64_t ldc);

constexpr kintsugi_type real_type(kintsugi_type type) {
  return is_single(type) ? KINTSUGI_F32 : KINTSUGI_F64;
}
// Returns the accuracy of the type's own contract.
constexpr const char* own_accuracy(kintsugi_type type) { return is_single(type) ? "fp32" : "fp64"; }
// Return scalars in host memory, the one for a type and the zero for all types.
const void* one(kintsugi_type type);
const void* zero();
// True if a scalar of that type in host memory is 0.
bool is_zero(const void* scalar, kintsugi_type type);

constexpr bool has_vectors(Routine routine) { return routine >= Routine::gemv; }
// True for symv and hemv.
constexpr bool has_symmetric_matrix_and_vectors(Routine routine) {
  return routine == Routine::symv || routine == Routine::hemv;
}
constexpr bool has_side(Routine routine) { return routine >= Routine::symm && routine <= Routine::trsm; }
constexpr bool has_diag(Routine routine) { return routine == Routine::trmm || routine == Routine::trsm; }
constexpr bool has_uplo(Routine routine) {
  return (routine >= Routine::gemmt && routine <= Routine::trsm) || has_symmetric_matrix_and_vectors(routine);
}
constexpr bool has_op_a(Routine routine) {
  return routine <= Routine::herkx || has_diag(routine) || routine == Routine::gemv;
}
constexpr bool has_op_b(Routine routine) { return routine <= Routine::gemmt; }
// True for routines that write one triangle of C.
constexpr bool writes_triangle(Routine routine) {
  return routine >= Routine::gemmt && routine <= Routine::herkx;
}
constexpr bool is_hermitian(Routine routine) {
  return routine == Routine::herk || routine == Routine::her2k || routine == Routine::herkx ||
         routine == Routine::hemm || routine == Routine::hemv;
}

// Order of the symmetric or triangular matrix A of a routine that has a side.
constexpr std::int64_t order_of_a(const Call& call) { return call.side == Side::left ? call.m : call.n; }

// Returns the column-major call that computes the same result in the same memory, by transposing the
// equation. A wrong op of a row-major rank-k update may become a right one, so such ops must be checked
// before. The alpha of a row-major her2k is not conjugated here: see compose_typed(). Neither is y of a
// row-major gerc, nor the matrices of gemv and hemv: for routines with vectors the call serves the check of
// arguments alone.
Call as_column_major(Call call);

// Returns the product that a routine with vectors is: gemm, for symv and hemv symm and hemm with one column.
// All increments must be positive. The product has the layout of the call, or the other one if only that
// takes the increments as leading dimensions. If is_supported is false afterwards, none does: then a
// column-major call conjugates a matrix or y, or has a symmetric matrix, and an increment is not 1. dot
// writes c, or adds to it if beta is set; dsdot and sdsdot have no such product.
Call product_of_vectors(const Call& call);

// True if a call whose scalars are in host memory leaves the vector or matrix that it writes as it is, by the
// quick returns of the reference BLAS. False for dot, dsdot and sdsdot.
bool leaves_result(const Call& call);

// Returns the problem of a product whose arguments are right, with scalars and matrices in host memory.
kintsugi_problem problem_of(const Call& call);
kintsugi_operands operands_of(const Call& call);

// ------------------------------------------------------------------ memory of the matrices

// Lines of equal length at equal distances: the columns of a column-major matrix or the rows of a row-major
// one.
struct Region {
  const char* first = nullptr;  // nullptr: no memory
  std::int64_t lines = 0;
  std::int64_t line_bytes = 0;
  std::int64_t stride = 0;  // distance of two lines in bytes

  bool is_empty() const { return first == nullptr || lines <= 0 || line_bytes <= 0; }
};

// True if the regions have a byte in common. Also true for regions of different strides if the address ranges
// from first to last byte overlap, although the lines may lie between each other.
bool overlap(const Region& one, const Region& other);
// True if all bytes of `inner` are known to be in `outer`. Returns false for regions of different strides,
// unless `outer` is contiguous.
bool covers(const Region& outer, const Region& inner);

// Return the matrices that a call with right arguments reads and writes: A and B unless k = 0, and C if
// `reads_c`. A routine without B has an empty region for B. The matrices of a strided batch are one region:
// all columns if these have equal distances (stride = ld * columns), else the range from the first to the
// last byte. Batches by pointers have none, since the pointers are in device memory.
std::vector<Region> inputs_of(const Call& call, bool reads_c);
Region output_of(const Call& call);

// True if a call with scalars in host memory reads C: beta is not 0, or the routine works in place.
bool reads_c(const Call& call);

// Return a copy of a region's lines without gaps, and copy it back.
std::vector<char> packed(const Region& region);
void unpack(const std::vector<char>& lines, const Region& region);

}  // namespace kintsugi::drop_in
