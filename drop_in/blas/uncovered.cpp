// The exported names of levels 1 and 2. Each is a jump to the next BLAS's function, by way of an instruction
// that counts the call if there is a report. Registers and stack stay as the caller left them, so that one
// jump serves all arguments and results: gfortran and Intel's compilers return the complex number of zdotc_
// in different ways.
//
// The jumps are written for x86-64. On other processors these names are not exported, and nothing is
// counted.
#include "answer.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "core/intercept.hpp"

namespace kintsugi::blas {

using Code = void();

// An exported name. The members at the fixed offsets are read and written by the jumps.
struct Uncovered {
  std::atomic<Code*> target;            // offset 0: where the name jumps to
  std::atomic<Code*> next = nullptr;    // offset 8: the next BLAS's function
  std::atomic<std::int64_t> calls = 0;  // offset 16
  Code* count;                          // adds 1 to `calls` and jumps to `next`
  const char* name;
  const char* routine;  // without the letter of the type
};

#ifdef __x86_64__

static_assert(sizeof(std::atomic<Code*>) == 8 && std::atomic<Code*>::is_always_lock_free);

// The assembler's macro for a name. The exported name jumps to `target`. At first that is
// kintsugi_first_SYMBOL, which has the routine looked up; then it is the next BLAS's function, or
// kintsugi_count_SYMBOL. Calls from within a call of this library are not counted: the symbol with the long
// name is drop_in::calls_under_way.
asm(R"(
.macro kintsugi_jumps symbol
.pushsection .text
  .p2align 4
  .globl \symbol
  .type \symbol, @function
\symbol:
  .cfi_startproc
  endbr64
  jmp *kintsugi_routine_\symbol(%rip)
  .cfi_endproc
  .size \symbol, . - \symbol
  .globl kintsugi_first_\symbol
  .hidden kintsugi_first_\symbol
kintsugi_first_\symbol:
  .cfi_startproc
  endbr64
  leaq kintsugi_routine_\symbol(%rip), %r11
  jmp kintsugi_first_call
  .cfi_endproc
  .globl kintsugi_count_\symbol
  .hidden kintsugi_count_\symbol
kintsugi_count_\symbol:
  .cfi_startproc
  endbr64
  movq _ZN8kintsugi7drop_in15calls_under_wayE@GOTTPOFF(%rip), %r11
  cmpl $0, %fs:(%r11)
  jne 1f
  lock incq kintsugi_routine_\symbol + 16(%rip)
1:
  jmp *kintsugi_routine_\symbol + 8(%rip)
  .cfi_endproc
.popsection
.endm
)");
#define KINTSUGI_BLAS_UNCOVERED(routine_, convention, type, integer, symbol)                 \
  extern "C" {                                                                               \
  __attribute__((visibility("hidden"))) void kintsugi_first_##symbol();                      \
  __attribute__((visibility("hidden"))) void kintsugi_count_##symbol();                      \
  __attribute__((visibility("hidden"), used)) constinit Uncovered kintsugi_routine_##symbol{ \
      .target = &kintsugi_first_##symbol,                                                    \
      .count = &kintsugi_count_##symbol,                                                     \
      .name = #symbol,                                                                       \
      .routine = #routine_};                                                                 \
  }                                                                                          \
  asm("kintsugi_jumps " #symbol);
#include "blas/symbols.def"
#undef KINTSUGI_BLAS_UNCOVERED

// Saves the registers that may hold arguments, has the routine in r11 looked up, and jumps to what is
// returned.
asm(R"(
.pushsection .text
.hidden kintsugi_first_call
.globl kintsugi_first_call
kintsugi_first_call:
  .cfi_startproc
.irp register, rdi, rsi, rdx, rcx, r8, r9, rax
  pushq %\register
.endr
  subq $128, %rsp
  .cfi_def_cfa_offset 192
.irp number, 0, 1, 2, 3, 4, 5, 6, 7
  movups %xmm\number, 16*\number(%rsp)
.endr
  movq %r11, %rdi
  call kintsugi_look_up_uncovered
  movq %rax, %r11
.irp number, 0, 1, 2, 3, 4, 5, 6, 7
  movups 16*\number(%rsp), %xmm\number
.endr
  addq $128, %rsp
.irp register, rax, r9, r8, rcx, rdx, rsi, rdi
  popq %\register
.endr
  .cfi_def_cfa_offset 8
  jmp *%r11
  .cfi_endproc
.popsection
)");

#endif

namespace {

#ifdef __x86_64__
#define KINTSUGI_BLAS_UNCOVERED(routine, convention, type, integer, symbol) &kintsugi_routine_##symbol,
Uncovered* const all_routines[] = {
#include "blas/symbols.def"
};
#undef KINTSUGI_BLAS_UNCOVERED
#else
constexpr std::span<Uncovered* const> all_routines;
#endif

// Returns the name of a routine and its variants: dot for dotu, dsdot, dotc_sub; ger for geru.
std::string_view family_of(std::string_view routine) {
  for (const std::string_view family : {"dot", "nrm2", "asum"})
    if (routine.find(family) != std::string_view::npos) return family;
  return routine.starts_with("ger") ? "ger" : routine;
}

bool asks_for_all_sums() {
  const Settings& now = settings();
  return !now.is_malformed() && now.policy != Policy::native &&
         (now.accuracy == "exact" || now.accuracy == "reproducible");
}

// Tells the user once that a routine does not have the accuracy that all sums should have.
void note_uncovered(const char* name) {
  static constinit std::atomic<bool> was_noted = false;
  if (was_noted.exchange(true)) return;
  std::fprintf(
      stderr,
      "kintsugi: %s: accuracy %s is kept by level 3 alone; the next BLAS computes routines of levels 1 and 2 "
      "(KINTSUGI_REPORT=- counts them)\n",
      name, settings().accuracy.c_str());
}

}  // namespace

// Returns the function that the first call of a routine jumps to. A call from within a call of this library
// decides nothing for later ones.
extern "C" __attribute__((visibility("hidden"), used)) void* kintsugi_look_up_uncovered(Uncovered& routine) {
  Code* const next = reinterpret_cast<Code*>(find_next(routine.name));
  if (next == nullptr) {
    std::fprintf(stderr, "kintsugi: %s: no BLAS has it\n", routine.name);
    std::_Exit(127);  // the status of the dynamic linker where a symbol is missing
  }
  routine.next.store(next, std::memory_order_release);
  if (calls_under_way != 0) return reinterpret_cast<void*>(next);
  if (asks_for_all_sums()) note_uncovered(routine.name);
  Code* const target = settings().report.empty() ? next : routine.count;
  routine.target.store(target, std::memory_order_release);
  return reinterpret_cast<void*>(target);
}

std::map<std::string, std::int64_t> uncovered_calls() {
  std::map<std::string, std::int64_t> calls;
  for (const Uncovered* routine : all_routines)
    if (const std::int64_t count = routine->calls.load(std::memory_order_relaxed); count > 0)
      calls[routine->name] = count;
  return calls;
}

std::string uncovered_sentence() {
  std::map<std::string_view, std::int64_t> calls;
  for (const Uncovered* routine : all_routines)
    if (const std::int64_t count = routine->calls.load(std::memory_order_relaxed); count > 0)
      calls[family_of(routine->routine)] += count;
  std::vector<std::pair<std::int64_t, std::string_view>> sorted;
  for (const auto& [family, count] : calls) sorted.emplace_back(-count, family);
  std::sort(sorted.begin(), sorted.end());
  std::string sentence;
  for (const auto& [count, family] : sorted) {
    sentence += (sentence.empty() ? "" : ", ") + std::string(family) + " " + std::to_string(-count);
    if (family == sorted.front().second) sentence += count == -1 ? " call" : " calls";
  }
  if (!sentence.empty()) sentence += ": not emulated; routines of levels 1 and 2 go to the next BLAS";
  return sentence;
}

void forget_uncovered_calls() {
  for (Uncovered* routine : all_routines) routine->calls.store(0, std::memory_order_relaxed);
}

}  // namespace kintsugi::blas
