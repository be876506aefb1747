// Wrong arguments: every function calls xerbla_ with the number of the first wrong one and does not write to
// C.
#include "tests/drop_in/blas/arguments.hpp"

#include <complex>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/drop_in/blas/entries.hpp"

namespace {
std::string last_routine;
std::int32_t last_number = -1;
}  // namespace

// The program's own, as a tester has one.
extern "C" __attribute__((visibility("default"))) void xerbla_(const char* routine,
                                                               const std::int32_t* number,
                                                               std::size_t length) {
  last_routine.assign(routine, length);
  last_number = *number;
}

namespace kintsugi::test {

namespace {

struct WrongCase {
  const char* what;
  std::function<void(GemmArguments&)> spoil;
  int fortran;    // number in xGEMM, 0: the case is none for Fortran
  int row_major;  // number that the Fortran call has that the reference CBLAS makes for row-major matrices
  int column_major;
};

// m = 2, n = 3, k = 4, all leading dimensions large enough for any op and layout.
std::vector<WrongCase> wrong_cases() {
  return {
      {"op_a", [](auto& x) { x.op_a = '/'; }, 1, 1, 1},
      {"op_b", [](auto& x) { x.op_b = '/'; }, 2, 2, 2},
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      {"m", [](auto& x) { x.m = -1; }, 3, 4, 3},
      {"n", [](auto& x) { x.n = -1; }, 4, 3, 4},
      {"k", [](auto& x) { x.k = -1; }, 5, 5, 5},
      {"lda", [](auto& x) { x.lda = 1; }, 8, 10, 8},
      {"lda of a transpose", [](auto& x) { x.op_a = 'T', x.lda = x.row_major ? 1 : 3; }, 8, 10, 8},
      {"ldb", [](auto& x) { x.ldb = x.row_major ? 2 : 3; }, 10, 8, 10},
      {"ldb of a transpose", [](auto& x) { x.op_b = 'C', x.ldb = x.row_major ? 3 : 2; }, 10, 8, 10},
      {"ldc", [](auto& x) { x.ldc = 1; }, 13, 13, 13},
      {"ldc = 0 of an empty product", [](auto& x) { x.m = x.n = x.k = 0, x.ldc = 0; }, 13, 13, 13},
      {"m before lda and ldc", [](auto& x) { x.m = -1, x.lda = x.ldc = 0; }, 3, 4, 3},
      {"none", [](auto&) {}, -1, -1, -1},
  };
}

std::string routine_of(const Entry& entry) {
  std::string name = std::string(1, static_cast<char>(entry.type - 'a' + 'A'));
  return name + (std::string(entry.routine) == "gemm" ? "GEMM " : "GEMM3M");
}

bool holds(const Entry& entry, const WrongCase& wrong, bool row_major) {
  std::vector<std::complex<double>> a(64, 1), b(64, 1), c(64, 7);
  const std::complex<double> zero = 0;
  const std::complex<double> one = 1;
  GemmArguments x{.row_major = row_major,
                  .m = 2,
                  .n = 3,
                  .k = 4,
                  .alpha = &zero,
                  .a = a.data(),
                  .lda = 6,
                  .b = b.data(),
                  .ldb = 6,
                  .beta = &one,
                  .c = c.data(),
                  .ldc = 6};
  wrong.spoil(x);
  last_routine.clear();
  last_number = -1;
  // Scalars of single precision would read half of a double: zero is zero in both, and beta does not matter
  // where nothing is computed.
  const std::complex<float> single_one = 1;
  if (entry.type == 's' || entry.type == 'c') x.beta = &single_one;
  entry.call(x);
  const int expected = !entry.is_cblas ? wrong.fortran : row_major ? wrong.row_major : wrong.column_major;
  const bool right_routine = expected < 0 || last_routine == routine_of(entry);
  const bool untouched = c == std::vector<std::complex<double>>(64, 7);
  if (last_number == expected && right_routine && untouched) return true;
  std::printf("%s, %s-major, wrong %s: xerbla got \"%s\", %d where \"%s\", %d is right%s\n", entry.name,
              row_major ? "row" : "column", wrong.what, last_routine.c_str(), last_number,
              routine_of(entry).c_str(), expected, untouched ? "" : ", and C was written");
  return false;
}

}  // namespace

int check_arguments() {
  int failures = 0;
  int checks = 0;
  for (const Entry& entry : entries()) {
    for (const WrongCase& wrong : wrong_cases()) {
      if (!entry.is_cblas && wrong.fortran == 0) continue;
      for (const bool row_major : {false, true}) {
        if (row_major && !entry.is_cblas) continue;
        ++checks;
        failures += holds(entry, wrong, row_major) ? 0 : 1;
      }
    }
  }
  std::printf("%d calls with wrong arguments, %d failures\n", checks, failures);
  return failures;
}

}  // namespace kintsugi::test
