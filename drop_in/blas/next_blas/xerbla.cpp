#include "xerbla.hpp"

#include <cctype>
#include <cstring>
#include <string>

#include "next.hpp"

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

void report_bad_argument(const char* routine, Convention convention, Layout layout, const BadArgument& bad) {
  if (convention == Convention::fortran) return call_xerbla(routine, bad.number);
  const CblasVariables variables(layout == Layout::row_major);
  if (bad.enumerator != nullptr) return report_enumerator(routine, bad);
  call_xerbla(routine, bad.number);
}

}  // namespace kintsugi::blas
