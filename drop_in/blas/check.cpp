// Arguments of a call, checked in the order of the reference BLAS, and the reports of wrong ones.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "call.hpp"

// Weak symbols: null if no library in the program's search order has them. The two variables belong to the
// reference CBLAS. Its xerbla_ reads them to tell a CBLAS call from a Fortran call.
extern "C" {
__attribute__((weak)) void xerbla_(const char* routine, const std::int64_t* number, std::size_t length);
__attribute__((weak)) void cblas_xerbla(int number, const char* routine, const char* format, ...);
extern __attribute__((weak)) int RowMajorStrg;
extern __attribute__((weak)) int CBLAS_CallFromC;
}

namespace kintsugi::blas {

namespace {

bool is_too_small(std::int64_t leading_dimension, std::int64_t rows) {
  return leading_dimension < std::max<std::int64_t>(rows, 1);
}

bool is_bad(Op op) { return op == Op::invalid || op == Op::conjugate_only; }

bool is_rank_k_update(const Call& call) { return writes_triangle(call.routine) && !has_op_b(call.routine); }

// True if a rank-k update accepts `op`. herk and her2k refuse op = T. Complex syrk and syr2k refuse op = C.
bool accepts(const Call& call, Op op) {
  if (is_bad(op)) return false;
  return is_hermitian(call.routine) ? op != Op::t : op != Op::c || !is_complex(call.type);
}

// ------------------------------------------------------------------ Fortran

// True if `ldb` or `ldc` of the routine is the increment of a vector, and `lda` that of x.
bool has_vector_b(Routine routine) { return has_vectors(routine); }
bool has_vector_c(Routine routine) { return has_vectors(routine) && routine != Routine::ger; }
bool has_vector_a(Routine routine) { return routine == Routine::ger; }

std::int64_t rows_of_a(const Call& call) {
  if (has_vectors(call.routine)) return call.m;
  if (has_side(call.routine)) return order_of_a(call);
  return call.op_a == Op::n ? call.m : call.k;
}

std::int64_t rows_of_b(const Call& call) {
  if (has_side(call.routine)) return call.m;
  return has_op_b(call.routine) ? (call.op_b == Op::n ? call.k : call.n) : rows_of_a(call);
}

template <Argument argument>
bool is_wrong(const Call& call) {
  using enum Argument;
  switch (argument) {
    case side: return call.side == Side::invalid;
    case uplo: return call.uplo == Uplo::invalid;
    case op_a: return is_rank_k_update(call) ? !accepts(call, call.op_a) : is_bad(call.op_a);
    case op_b: return is_bad(call.op_b);
    case diag: return call.diag == Diag::invalid;
    case m: return call.m < 0;
    case n: return call.n < 0;
    case k: return call.k < 0;
    case lda: return has_vector_a(call.routine) ? call.lda == 0 : is_too_small(call.lda, rows_of_a(call));
    case ldb: return has_vector_b(call.routine) ? call.ldb == 0 : is_too_small(call.ldb, rows_of_b(call));
    case ldc: return has_vector_c(call.routine) ? call.ldc == 0 : is_too_small(call.ldc, call.m);
    case count: return call.count < 0;
    default: return false;
  }
}

template <Argument... arguments>
int first_wrong(ArgumentList<arguments...>, const Call& call) {
  int number = 0;
  return ((++number, is_wrong<arguments>(call)) || ...) ? number : 0;
}

int first_bad_argument_of_fortran(const Call& call) {
  switch (call.routine) {
    case Routine::gemm:
      return call.batch == BatchKind::single ? first_wrong(lists::Gemm(), call)
                                             : first_wrong(lists::Strided(), call);
    case Routine::gemmt: return first_wrong(lists::Gemmt(), call);
    case Routine::syrk:
    case Routine::herk: return first_wrong(lists::Syrk(), call);
    case Routine::syr2k:
    case Routine::her2k:
    case Routine::syrkx:
    case Routine::herkx: return first_wrong(lists::Syr2k(), call);
    case Routine::symm:
    case Routine::hemm: return first_wrong(lists::Symm(), call);
    case Routine::trmm:
    case Routine::trsm: return first_wrong(lists::Trmm(), call);
    case Routine::gemv: return first_wrong(lists::Gemv(), call);
    case Routine::symv:
    case Routine::hemv: return first_wrong(lists::Symv(), call);
    case Routine::ger: return first_wrong(lists::Ger(), call);
    case Routine::dot:
    case Routine::dsdot:
    case Routine::sdsdot: return 0;  // every length and every increment is right
  }
  return 0;
}

// ------------------------------------------------------------------ CBLAS

// True if the reference CBLAS refuses the op before it calls Fortran. It does so for the op of a row-major
// rank-k update, and for every unknown op.
bool is_bad_of_cblas(const Call& call, Op op) {
  if (op == Op::invalid) return true;
  return is_rank_k_update(call) && call.layout == Layout::row_major && !accepts(call, op);
}

BadArgument first_bad_enumerator(const Call& call, const int* enumerators) {
  struct Enumerator {
    bool is_argument;  // false: the routine lacks it
    bool is_bad;
    const char* name;
  };
  const Routine routine = call.routine;
  const bool has_two_ops = has_op_b(routine);
  const Enumerator in_order[] = {{true, call.layout == Layout::invalid, "layout"},
                                 {has_side(routine), call.side == Side::invalid, "Side"},
                                 {has_uplo(routine), call.uplo == Uplo::invalid, "Uplo"},
                                 {has_op_a(routine), is_bad_of_cblas(call, call.op_a),
                                  has_two_ops || routine == Routine::gemv ? "TransA" : "Trans"},
                                 {has_two_ops, is_bad_of_cblas(call, call.op_b), "TransB"},
                                 {has_diag(routine), call.diag == Diag::invalid, "Diag"}};
  int number = 0;
  for (const Enumerator& enumerator : in_order) {
    if (!enumerator.is_argument) continue;
    ++number;
    if (enumerator.is_bad) return {number, enumerator.name, enumerators[number - 1]};
  }
  return {};
}

// ------------------------------------------------------------------ reports

using Xerbla = void(const char*, const std::int64_t*, std::size_t);

// Passes the number as 64 bits. An xerbla_ that reads 32 bits gets the same number on little-endian machines.
void call_xerbla(const char* routine, std::int64_t number) {
  Xerbla* function = &xerbla_;
  if (function == nullptr) function = reinterpret_cast<Xerbla*>(find_next("xerbla_"));
  if (function != nullptr) function(routine, &number, std::strlen(routine));
}

// Returns "cblas_dgemm" for "DGEMM ".
std::string cblas_name(const char* routine) {
  std::string name = "cblas_";
  for (const char* letter = routine; *letter != '\0' && *letter != ' '; ++letter)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(*letter)));
  return name;
}

// Sets the variables of the reference CBLAS, if they exist, to the values that they have during a CBLAS call.
// The destructor resets them.
class CblasVariables {
 public:
  explicit CblasVariables(bool row_major) {
    if (&RowMajorStrg != nullptr) RowMajorStrg = row_major ? 1 : 0;
    if (&CBLAS_CallFromC != nullptr) CBLAS_CallFromC = 1;
  }
  ~CblasVariables() {
    if (&RowMajorStrg != nullptr) RowMajorStrg = 0;
    if (&CBLAS_CallFromC != nullptr) CBLAS_CallFromC = 0;
  }
  CblasVariables(const CblasVariables&) = delete;
  CblasVariables& operator=(const CblasVariables&) = delete;
};

void report_enumerator(const char* routine, const BadArgument& bad) {
  // Only the reference CBLAS and its test program have RowMajorStrg. The cblas_xerbla of another library may
  // end the program. Those libraries report a wrong enumerator by xerbla_ themselves, so this function does
  // so, too.
  if (&cblas_xerbla == nullptr || &RowMajorStrg == nullptr) return call_xerbla(routine, bad.number - 1);
  const std::string name = cblas_name(routine);
  const std::string format = std::string("Illegal ") + bad.enumerator + " setting, %d\n";
  cblas_xerbla(bad.number, name.c_str(), format.c_str(), bad.value);
}

}  // namespace

BadArgument first_bad_argument(const Call& call, const int* enumerators) {
  if (enumerators != nullptr) {
    if (const BadArgument bad = first_bad_enumerator(call, enumerators); bad.number != 0) return bad;
  }
  // A column-major call is checked in place, since a copy takes longer than the checks.
  const int number = call.layout == Layout::row_major ? first_bad_argument_of_fortran(as_column_major(call))
                                                      : first_bad_argument_of_fortran(call);
  return {number, nullptr, 0};
}

void report_bad_argument(const Invocation& invocation, Layout layout, const BadArgument& bad) {
  const char* const routine = invocation.symbol.routine();
  if (invocation.enumerators == nullptr) return call_xerbla(routine, bad.number);
  const CblasVariables variables(layout == Layout::row_major);
  if (bad.enumerator != nullptr) return report_enumerator(routine, bad);
  call_xerbla(routine, bad.number);
}

}  // namespace kintsugi::blas
