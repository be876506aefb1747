// Calls of the cuBLAS drop-in as programs make them, over the fake driver and the fake cuBLAS. Calls that
// reach Kintsugi are computed on the host (host_engine.hpp).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/drop_in/cublas/entries.hpp"
#include "tests/drop_in/cublas/errors.hpp"
#include "tests/drop_in/cublas/level3.hpp"
#include "tests/drop_in/cublas/random.hpp"
#include "tests/drop_in/cublas/semantics.hpp"
#include "tests/drop_in/cublas/vectors.hpp"
#include "tests/support/effort.hpp"

namespace {

constexpr const char* usage =
    "cublas_calls names | semantics | errors | random [--forwarded] [--seed S] [--cases N] | threads ... | level3 "
    "... | vectors ...\n"
    "  names      lists the names of the table\n"
    "  semantics  calls that must go to cuBLAS or to Kintsugi, under the policy emulate\n"
    "  random     calls each with random matrices; --forwarded says that cuBLAS must compute; example:\n"
    "             KINTSUGI_POLICY=emulate FAKE_CUDA_MULTIPLY=1 cublas_calls random --seed 1 --cases 600\n"
    "  level3     the same for the other routines of level 3\n"
    "  vectors    the same for gemv, symv, hemv, ger and dot, which are answered under an accuracy\n"
    "  errors     prints the errors of products with rounding errors, by caller\n"
    "  threads    a quarter of the cases from each of four threads at once\n";

long long value_of(int count, char** words, const char* flag, long long otherwise) {
  for (int i = 2; i + 1 < count; ++i)
    if (std::strcmp(words[i], flag) == 0) return std::atoll(words[i + 1]);
  return otherwise;
}

bool has(int count, char** words, const char* flag) {
  for (int i = 2; i < count; ++i)
    if (std::strcmp(words[i], flag) == 0) return true;
  return false;
}

int print_names() {
  for (const auto& entry : kintsugi::test::entries()) std::puts(entry.name);
  for (const char* name : kintsugi::test::level3_names()) std::puts(name);
  for (const char* name : kintsugi::test::vector_names()) std::puts(name);
#define KINTSUGI_CUBLAS_XT(type, symbol) std::puts(#symbol);
#include "drop_in/cublas/symbols.def"
  return 0;
}

}  // namespace

int main(int count, char** words) {
  using namespace kintsugi::test;
  const char* command = count > 1 ? words[1] : "";
  const auto seed = static_cast<std::uint64_t>(value_of(count, words, "--seed", 1));
  const long long cases = value_of(count, words, "--cases", thorough ? 8000 : 200);
  const bool emulated = !has(count, words, "--forwarded");
  if (std::strcmp(command, "names") == 0) return print_names();
  if (std::strcmp(command, "semantics") == 0)
    return check_semantics() + check_level3_semantics() == 0 ? 0 : 1;
  if (std::strcmp(command, "errors") == 0) return print_errors();
  if (std::strcmp(command, "random") == 0) return check_random(seed, cases, emulated) == 0 ? 0 : 1;
  if (std::strcmp(command, "threads") == 0) return check_threads(seed, cases / 4, emulated) == 0 ? 0 : 1;
  if (std::strcmp(command, "level3") == 0) return check_level3(seed, cases, emulated) == 0 ? 0 : 1;
  if (std::strcmp(command, "vectors") == 0) return check_vectors(seed, cases, emulated) == 0 ? 0 : 1;
  std::fputs(usage, stderr);
  return 2;
}
