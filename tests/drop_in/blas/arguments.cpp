// Wrong arguments: every function calls xerbla_ with the number of the first wrong one and does not write to
// C.
#include "tests/drop_in/blas/arguments.hpp"

#include <cctype>
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
  std::function<void(Arguments&)> spoil;
  int fortran;    // number in the Fortran routine, 0: the case is none for Fortran
  int row_major;  // number that the Fortran call has that the reference CBLAS makes for row-major matrices
  int column_major;
};
using Cases = std::vector<WrongCase>;

WrongCase same(const char* what, const std::function<void(Arguments&)>& spoil, int number) {
  return {what, spoil, number, number, number};
}

// All cases have m = 2, n = 3, k = 4, all leading dimensions large enough for any op and layout.
Cases of_gemm() {
  return {
      same(
          "op_a", [](auto& x) { x.op_a = '/'; }, 1),
      same(
          "op_b", [](auto& x) { x.op_b = '/'; }, 2),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      {"m", [](auto& x) { x.m = -1; }, 3, 4, 3},
      {"n", [](auto& x) { x.n = -1; }, 4, 3, 4},
      same(
          "k", [](auto& x) { x.k = -1; }, 5),
      {"lda", [](auto& x) { x.lda = 1; }, 8, 10, 8},
      {"lda of a transpose", [](auto& x) { x.op_a = 'T', x.lda = x.row_major ? 1 : 3; }, 8, 10, 8},
      {"ldb", [](auto& x) { x.ldb = x.row_major ? 2 : 3; }, 10, 8, 10},
      {"ldb of a transpose", [](auto& x) { x.op_b = 'C', x.ldb = x.row_major ? 3 : 2; }, 10, 8, 10},
      same(
          "ldc", [](auto& x) { x.ldc = 1; }, 13),
      same(
          "ldc = 0 of an empty product", [](auto& x) { x.m = x.n = x.k = 0, x.ldc = 0; }, 13),
      {"m before lda and ldc", [](auto& x) { x.m = -1, x.lda = x.ldc = 0; }, 3, 4, 3},
      same(
          "none", [](auto&) {}, -1),
  };
}

Cases of_batch() {
  Cases cases = of_gemm();
  cases.push_back(same(
      "number of products", [](auto& x) { x.count = -1; }, 15));
  return cases;
}

// Strides follow the leading dimensions.
Cases of_strided_batch() {
  Cases cases = of_gemm();
  const auto renumbered = [](int number) { return number == 10 ? 11 : number == 13 ? 15 : number; };
  for (WrongCase& one : cases) {
    one.fortran = renumbered(one.fortran);
    one.row_major = renumbered(one.row_major);
    one.column_major = renumbered(one.column_major);
  }
  cases.push_back(same(
      "number of products", [](auto& x) { x.count = -1; }, 17));
  return cases;
}

Cases of_gemmt() {
  return {
      same(
          "uplo", [](auto& x) { x.uplo = '/'; }, 1),
      same(
          "op_a", [](auto& x) { x.op_a = '/'; }, 2),
      same(
          "op_b", [](auto& x) { x.op_b = '/'; }, 3),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      same(
          "n", [](auto& x) { x.n = -1; }, 4),
      same(
          "k", [](auto& x) { x.k = -1; }, 5),
      {"lda", [](auto& x) { x.lda = x.row_major ? 3 : 2; }, 8, 10, 8},
      {"ldb", [](auto& x) { x.ldb = x.row_major ? 2 : 3; }, 10, 8, 10},
      {"ldb of a transpose", [](auto& x) { x.op_b = 'T', x.ldb = x.row_major ? 3 : 2; }, 10, 8, 10},
      same(
          "ldc", [](auto& x) { x.ldc = 2; }, 13),
      same(
          "uplo before n", [](auto& x) { x.uplo = '/', x.n = -1; }, 1),
      same(
          "none", [](auto&) {}, -1),
  };
}

// syrk and herk; with two operands syr2k and her2k.
Cases of_update(const Entry& entry) {
  const bool has_b = entry.is("syr2k") || entry.is("her2k");
  const bool is_hermitian = entry.is("herk") || entry.is("her2k");
  const bool is_complex = entry.type == 'c' || entry.type == 'z';
  Cases cases = {
      same(
          "uplo", [](auto& x) { x.uplo = '/'; }, 1),
      same(
          "op", [](auto& x) { x.op_a = '/'; }, 2),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      same(
          "n", [](auto& x) { x.n = -1; }, 3),
      same(
          "k", [](auto& x) { x.k = -1; }, 4),
      same(
          "lda", [](auto& x) { x.lda = x.row_major ? 3 : 2; }, 7),
      same(
          "lda of a transpose",
          [=](auto& x) { x.op_a = is_hermitian ? 'C' : 'T', x.lda = x.row_major ? 2 : 3; }, 7),
      same(
          "ldc", [](auto& x) { x.ldc = 2; }, has_b ? 12 : 10),
      same(
          "none", [](auto&) {}, -1),
  };
  if (has_b)
    cases.push_back(same(
        "ldb", [](auto& x) { x.ldb = x.row_major ? 3 : 2; }, 9));
  if (is_hermitian)
    cases.push_back(same(
        "op that does not conjugate", [](auto& x) { x.op_a = 'T'; }, 2));
  if (!is_hermitian && is_complex)
    cases.push_back(same(
        "op that conjugates", [](auto& x) { x.op_a = 'C'; }, 2));
  return cases;
}

Cases of_symm() {
  return {
      same(
          "side", [](auto& x) { x.side = '/'; }, 1),
      same(
          "uplo", [](auto& x) { x.uplo = '/'; }, 2),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      {"m", [](auto& x) { x.m = -1; }, 3, 4, 3},
      {"n", [](auto& x) { x.n = -1; }, 4, 3, 4},
      same(
          "lda", [](auto& x) { x.lda = 1; }, 7),
      same(
          "lda on the right", [](auto& x) { x.side = 'R', x.lda = 2; }, 7),
      same(
          "ldb", [](auto& x) { x.ldb = 1; }, 9),
      same(
          "ldc", [](auto& x) { x.ldc = 1; }, 12),
      same(
          "none", [](auto&) {}, -1),
  };
}

Cases of_trmm() {
  return {
      same(
          "side", [](auto& x) { x.side = '/'; }, 1),
      same(
          "uplo", [](auto& x) { x.uplo = '/'; }, 2),
      same(
          "op", [](auto& x) { x.op_a = '/'; }, 3),
      same(
          "diag", [](auto& x) { x.diag = '/'; }, 4),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      {"m", [](auto& x) { x.m = -1; }, 5, 6, 5},
      {"n", [](auto& x) { x.n = -1; }, 6, 5, 6},
      same(
          "lda", [](auto& x) { x.lda = 1; }, 9),
      same(
          "lda on the right", [](auto& x) { x.side = 'R', x.lda = 2; }, 9),
      same(
          "ldb", [](auto& x) { x.ldc = 1; }, 11),
      same(
          "diag before m and ldb", [](auto& x) { x.diag = '/', x.m = -1, x.ldc = 0; }, 4),
  };
}

Cases of_gemv() {
  return {
      same(
          "op", [](auto& x) { x.op_a = '/'; }, 1),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      {"m", [](auto& x) { x.m = -1; }, 2, 3, 2},
      {"n", [](auto& x) { x.n = -1; }, 3, 2, 3},
      same(
          "lda", [](auto& x) { x.lda = 1; }, 6),
      same(
          "increment of x", [](auto& x) { x.ldb = 0; }, 8),
      same(
          "increment of y", [](auto& x) { x.ldc = 0; }, 11),
      same(
          "op before lda and increments", [](auto& x) { x.op_a = '/', x.lda = x.ldb = x.ldc = 0; }, 1),
      same(
          "none", [](auto&) {}, -1),
  };
}

Cases of_symv() {
  return {
      same(
          "uplo", [](auto& x) { x.uplo = '/'; }, 1),
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      same(
          "n", [](auto& x) { x.n = -1; }, 2),
      same(
          "lda", [](auto& x) { x.lda = 2; }, 5),
      same(
          "increment of x", [](auto& x) { x.ldb = 0; }, 7),
      same(
          "increment of y", [](auto& x) { x.ldc = 0; }, 10),
      same(
          "none", [](auto&) {}, -1),
  };
}

Cases of_ger() {
  return {
      {"layout", [](auto& x) { x.raw_layout = 7; }, 0, 0, 0},
      {"m", [](auto& x) { x.m = -1; }, 1, 2, 1},
      {"n", [](auto& x) { x.n = -1; }, 2, 1, 2},
      {"increment of x", [](auto& x) { x.lda = 0; }, 5, 7, 5},
      {"increment of y", [](auto& x) { x.ldb = 0; }, 7, 5, 7},
      same(
          "lda", [](auto& x) { x.ldc = 1; }, 9),
      same(
          "none", [](auto&) {}, -1),
  };
}

Cases wrong_cases(const Entry& entry) {
  if (entry.is("gemv")) return of_gemv();
  if (entry.is("symv") || entry.is("hemv")) return of_symv();
  if (entry.is("ger") || entry.is("geru") || entry.is("gerc")) return of_ger();
  if (entry.is("gemm") || entry.is("gemm3m")) return of_gemm();
  if (entry.is("gemm_batch")) return of_batch();
  if (entry.is("gemm_batch_strided")) return of_strided_batch();
  if (entry.is("gemmt") || entry.is("gemmtr")) return of_gemmt();
  if (entry.is("symm") || entry.is("hemm")) return of_symm();
  if (entry.is("trmm") || entry.is("trsm")) return of_trmm();
  return of_update(entry);
}

// The routine's name as xerbla spells it: upper case, at least six letters.
std::string routine_of(const Entry& entry) {
  std::string name = entry.type + std::string(entry.routine);
  for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return name + std::string(name.size() < 6 ? 6 - name.size() : 0, ' ');
}

// Real and complex, single and double scalars at once: the bits of a name's type come first.
struct Scalars {
  const std::complex<double> zero_double = 0, one_double = 1;
  const std::complex<float> one_single = 1;
};

void call(const Entry& entry, Arguments& x) {
  if (entry.call != nullptr) return entry.call(x);
  BatchArguments batch{.row_major = x.row_major,
                       .group_count = 1,
                       .groups = {x},
                       .alpha = x.alpha,
                       .beta = x.beta,
                       .a = {x.a},
                       .b = {x.b},
                       .c = {x.c},
                       .raw_layout = x.raw_layout};
  entry.call_batch(batch);
}

bool holds(const Entry& entry, const WrongCase& wrong, bool row_major) {
  std::vector<std::complex<double>> a(64, 1), b(64, 1), c(64, 7);
  const Scalars scalars;
  const bool is_single = entry.type == 's' || entry.type == 'c';
  Arguments x{.row_major = row_major,
              .m = 2,
              .n = 3,
              .k = 4,
              .alpha = &scalars.zero_double,
              .a = a.data(),
              .lda = 6,
              .b = b.data(),
              .ldb = 6,
              .beta = is_single ? static_cast<const void*>(&scalars.one_single) : &scalars.one_double,
              .c = c.data(),
              .ldc = 6};
  call(entry, x);  // with right arguments: the drop-in remembers the problem that it forwarded last
  c.assign(64, 7);
  wrong.spoil(x);
  last_routine.clear();
  last_number = -1;
  call(entry, x);
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

int check_arguments(bool has_accuracy) {
  int failures = 0;
  int checks = 0;
  std::vector<Entry> checked(entries().begin(), entries().end());
  for (const Entry& entry : vector_entries())
    if (has_accuracy && std::string_view(entry.routine).find("dot") == std::string_view::npos)
      checked.push_back(entry);
  for (const Entry& entry : checked) {
    for (const WrongCase& wrong : wrong_cases(entry)) {
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
