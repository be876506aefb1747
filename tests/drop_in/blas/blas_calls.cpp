// Calls of the BLAS drop-in as programs make them; the library is linked in place of a BLAS.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/drop_in/blas/arguments.hpp"
#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/random.hpp"
#include "tests/drop_in/blas/stacks.hpp"
#include "tests/support/effort.hpp"

namespace {

constexpr const char* usage =
    "blas_calls names | arguments | random [--seed S] [--first N] [--cases N] [--forwarded]\n"
    "           | vectors ... | special [--seed S] [--cases N] [--forwarded] | stacks [--bytes N]\n"
    "  names      lists the names of the table\n"
    "  arguments  calls each with wrong arguments\n"
    "  random     calls each with random matrices; example: blas_calls random --seed 1 --cases 600\n"
    "  vectors    the same for routines with vectors, which are answered under an accuracy\n"
    "  special    multiplies matrices that have NaN and infinities; classes are those of the naive loop\n"
    "  stacks     prints the bytes of stack that calls take; with --bytes calls in threads with so large stacks\n"
    "  --forwarded says that another BLAS may compute, as it does without an accuracy under the policies auto\n"
    "  (the default) and native\n";

int print_names() {
  for (const auto& entry : kintsugi::test::entries()) std::puts(entry.name);
  for (const auto& entry : kintsugi::test::vector_entries()) std::puts(entry.name);
#define KINTSUGI_BLAS_UNCOVERED(routine, convention, type, integer, symbol) std::puts(#symbol);
#include "drop_in/blas/symbols.def"
#undef KINTSUGI_BLAS_UNCOVERED
  return 0;
}

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

bool may_be_forwarded(int count, char** words) {
  const char* const policy = std::getenv("KINTSUGI_POLICY");
  const bool forwards =
      policy == nullptr || std::strcmp(policy, "auto") == 0 || std::strcmp(policy, "native") == 0;
  return has(count, words, "--forwarded") || (forwards && std::getenv("KINTSUGI_ACCURACY") == nullptr);
}

int run_random(int count, char** words) {
  const auto seed = static_cast<std::uint64_t>(value_of(count, words, "--seed", 1));
  const long long first = value_of(count, words, "--first", 0);
  const long long cases = value_of(count, words, "--cases", kintsugi::test::thorough ? 4800 : 240);
  return kintsugi::test::check_random(seed, first, cases, may_be_forwarded(count, words)) == 0 ? 0 : 1;
}

int run_vectors(int count, char** words) {
  const auto seed = static_cast<std::uint64_t>(value_of(count, words, "--seed", 1));
  const long long first = value_of(count, words, "--first", 0);
  const long long cases = value_of(count, words, "--cases", kintsugi::test::thorough ? 3000 : 240);
  const char* const accuracy = std::getenv("KINTSUGI_ACCURACY");
  const bool forwarded = accuracy == nullptr || has(count, words, "--forwarded");
  const bool exact = accuracy != nullptr && std::strcmp(accuracy, "exact") == 0;
  return kintsugi::test::check_vectors(seed, first, cases, forwarded, exact) == 0 ? 0 : 1;
}

int run_special(int count, char** words) {
  const auto seed = static_cast<std::uint64_t>(value_of(count, words, "--seed", 1));
  const long long cases = value_of(count, words, "--cases", kintsugi::test::thorough ? 4000 : 300);
  return kintsugi::test::check_special_values(seed, cases, may_be_forwarded(count, words)) == 0 ? 0 : 1;
}

int run_stacks(int count, char** words) {
  const long long bytes = value_of(count, words, "--bytes", 0);
  return bytes == 0 ? kintsugi::test::print_stacks()
                    : kintsugi::test::call_with_stack(static_cast<std::size_t>(bytes));
}

}  // namespace

int main(int count, char** words) {
  const char* command = count > 1 ? words[1] : "";
  if (std::strcmp(command, "names") == 0) return print_names();
  if (std::strcmp(command, "arguments") == 0)
    return kintsugi::test::check_arguments(std::getenv("KINTSUGI_ACCURACY") != nullptr) == 0 ? 0 : 1;
  if (std::strcmp(command, "random") == 0) return run_random(count, words);
  if (std::strcmp(command, "vectors") == 0) return run_vectors(count, words);
  if (std::strcmp(command, "special") == 0) return run_special(count, words);
  if (std::strcmp(command, "stacks") == 0) return run_stacks(count, words);
  std::fputs(usage, stderr);
  return 2;
}
