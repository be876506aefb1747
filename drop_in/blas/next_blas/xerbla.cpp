#include "xerbla.hpp"

#include <cctype>
#include <cstring>
#include <string>

#include "next.hpp"

// Looked up in the program's search order when this library is loaded; null where nothing there has them. The
// two variables are the reference CBLAS's, by which its xerbla_ tells CBLAS calls from Fortran's.
extern "C" {
__attribute__((weak)) void xerbla_(const char* routine, const std::int64_t* number, std::size_t length);
__attribute__((weak)) void cblas_xerbla(int number, const char* routine, const char* format, ...);
extern __attribute__((weak)) int RowMajorStrg;
extern __attribute__((weak)) int CBLAS_CallFromC;
}

namespace kintsugi::blas {

namespace {

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

void report_enumerator(const char* routine, const BadArgument& bad) {
  // Without the reference CBLAS or its tester behind it, cblas_xerbla is one that may end the program, where
  // the program's BLAS would have called xerbla_.
  if (&cblas_xerbla == nullptr || &RowMajorStrg == nullptr) return call_xerbla(routine, bad.number - 1);
  const std::string name = cblas_name(routine);
  const std::string format = std::string("Illegal ") + bad.enumerator + " setting, %d\n";
  cblas_xerbla(bad.number, name.c_str(), format.c_str(), bad.value);
}

}  // namespace

void report_bad_argument(const char* routine, Convention convention, Layout layout, const BadArgument& bad) {
  if (convention == Convention::fortran) return call_xerbla(routine, bad.number);
  const CblasVariables variables(layout == Layout::row_major);
  if (bad.enumerator != nullptr) return report_enumerator(routine, bad);
  call_xerbla(routine, bad.number);
}

}  // namespace kintsugi::blas
