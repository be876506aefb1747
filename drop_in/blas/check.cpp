#include "check.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <utility>

#include "next.hpp"

// Found in the program's search order when this library is loaded; null if nothing there has them. The two
// variables are the reference CBLAS's; its xerbla_ distinguishes calls of CBLAS from calls of Fortran by
// them.
extern "C" {
__attribute__((weak)) void xerbla_(const char* routine, const std::int64_t* number, std::size_t length);
__attribute__((weak)) void cblas_xerbla(int number, const char* routine, const char* format, ...);
extern __attribute__((weak)) int RowMajorStrg;
extern __attribute__((weak)) int CBLAS_CallFromC;
}

namespace kintsugi::blas {

namespace {

// The column-major product that computes the same: C^T = op(B)^T op(A)^T.
GemmCall as_fortran(GemmCall call) {
  if (call.layout != Layout::row_major) return call;
  std::swap(call.op_a, call.op_b);
  std::swap(call.m, call.n);
  std::swap(call.a, call.b);
  std::swap(call.lda, call.ldb);
  return call;
}

bool is_less(std::int64_t leading_dimension, std::int64_t rows) {
  return leading_dimension < std::max<std::int64_t>(rows, 1);
}

int first_bad_of_fortran(const GemmCall& call) {
  if (call.op_a == Op::invalid) return 1;
  if (call.op_b == Op::invalid) return 2;
  if (call.m < 0) return 3;
  if (call.n < 0) return 4;
  if (call.k < 0) return 5;
  if (is_less(call.lda, call.op_a == Op::n ? call.m : call.k)) return 8;
  if (is_less(call.ldb, call.op_b == Op::n ? call.k : call.n)) return 10;
  if (is_less(call.ldc, call.m)) return 13;
  return 0;
}

using Xerbla = void(const char*, const std::int64_t*, std::size_t);

// The number is stored in 64 bits: little-endian readers of 32 bits find it too.
void call_xerbla(const char* routine, std::int64_t number) {
  Xerbla* function = &xerbla_;
  if (function == nullptr) function = reinterpret_cast<Xerbla*>(find_next("xerbla_"));
  if (function != nullptr) function(routine, &number, std::strlen(routine));
}

// "cblas_dgemm" of "DGEMM ".
std::string cblas_name(const char* routine) {
  std::string name = "cblas_";
  for (const char* letter = routine; *letter != '\0' && *letter != ' '; ++letter)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(*letter)));
  return name;
}

// The reference CBLAS's variables, where they exist, as they are during its own calls.
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

void report_enumerator(const char* routine, const GemmCall& call, int number) {
  constexpr const char* formats[] = {"Illegal layout setting, %d\n", "Illegal TransA setting, %d\n",
                                     "Illegal TransB setting, %d\n"};
  const int values[] = {call.raw_layout, call.raw_op_a, call.raw_op_b};
  // Without the reference CBLAS or its tester behind it, cblas_xerbla is one that may end the program, where
  // the program's BLAS would have called xerbla_.
  if (&cblas_xerbla != nullptr && &RowMajorStrg != nullptr) {
    const std::string name = cblas_name(routine);
    cblas_xerbla(number, name.c_str(), formats[number - 1], values[number - 1]);
  } else {
    call_xerbla(routine, number - 1);
  }
}

}  // namespace

bool has_extension(const GemmCall& call) { return call.op_a == Op::extension || call.op_b == Op::extension; }

BadArgument first_bad_argument(const GemmCall& call) {
  if (call.convention == Convention::cblas) {
    if (call.layout == Layout::invalid) return {1, true};
    if (call.op_a == Op::invalid) return {2, true};
    if (call.op_b == Op::invalid) return {3, true};
  }
  return {first_bad_of_fortran(as_fortran(call)), false};
}

void report_bad_argument(const char* routine, const GemmCall& call, const BadArgument& bad) {
  if (call.convention == Convention::fortran) return call_xerbla(routine, bad.number);
  const CblasVariables variables(call.layout == Layout::row_major);
  if (bad.is_cblas_enumerator) return report_enumerator(routine, call, bad.number);
  call_xerbla(routine, bad.number);
}

}  // namespace kintsugi::blas
