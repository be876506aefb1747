// The exported names of levels 1 and 2. Each is a jump to the next BLAS's function, by way of an instruction
// that counts the call if there is a report. Registers and stack stay as the caller left them, so that one
// jump serves all arguments and results: gfortran and Intel's compilers return the complex number of zdotc_
// in different ways. Names of routines with vectors jump to a function of names.cpp instead if the user asks
// for an accuracy.
//
// The jumps are written for x86-64. On other processors nothing is counted, and names.cpp exports routines
// with vectors itself, except functions that return a complex number.
#include "answer.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "core/intercept.hpp"
#include "core/settings.hpp"

namespace kintsugi::blas {

using Code = void();

// An exported name. The members at the fixed offsets are read and written by the jumps.
struct Jump {
  std::atomic<Code*> target;            // offset 0: where the name jumps to
  std::atomic<Code*> next = nullptr;    // offset 8: the next BLAS's function
  std::atomic<std::int64_t> calls = 0;  // offset 16: calls that were counted
  Code* count;                          // adds 1 to `calls` and jumps to `next`
  const char* name;
  const char* routine;                // without the letter of the type
  Code* answer = nullptr;             // answers a call; nullptr: the routine is not answered
  Code* answer_by_address = nullptr;  // the same for callers that pass an address for the complex result
  kintsugi_type type = KINTSUGI_F64;
};

#ifdef __x86_64__

constexpr kintsugi_type type_of_letter(char letter) {
  return letter == 's'   ? KINTSUGI_F32
         : letter == 'd' ? KINTSUGI_F64
         : letter == 'c' ? KINTSUGI_C32
                         : KINTSUGI_C64;
}

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
#define DEFINE_JUMP(routine_, symbol, ...)                                              \
  extern "C" {                                                                          \
  __attribute__((visibility("hidden"))) void kintsugi_first_##symbol();                 \
  __attribute__((visibility("hidden"))) void kintsugi_count_##symbol();                 \
  __attribute__((visibility("hidden"), used)) constinit Jump kintsugi_routine_##symbol{ \
      .target = &kintsugi_first_##symbol,                                               \
      .count = &kintsugi_count_##symbol,                                                \
      .name = #symbol,                                                                  \
      .routine = #routine_,                                                             \
      __VA_ARGS__};                                                                     \
  }                                                                                     \
  asm("kintsugi_jumps " #symbol);
// The functions are declared without their arguments, which only their callers know.
#define DECLARE_ANSWER(symbol) \
  extern "C" __attribute__((visibility("hidden"))) void kintsugi_answer_##symbol();
#define KINTSUGI_BLAS_UNCOVERED(routine, convention, type, integer, symbol) DEFINE_JUMP(routine, symbol)
#define DEFINE_ANSWERED_JUMP(routine, convention, type_, integer, symbol) \
  DECLARE_ANSWER(symbol)                                                  \
  DEFINE_JUMP(routine, symbol, .answer = &kintsugi_answer_##symbol, .type = type_of_letter(#type_[0]))
#define KINTSUGI_BLAS_GEMV(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_SYMV(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_GER(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_DOT(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_DSDOT(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_SDSDOT(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_DOT_SUB(...) DEFINE_ANSWERED_JUMP(__VA_ARGS__)
#define KINTSUGI_BLAS_COMPLEX_DOT(routine, convention, type_, integer, symbol) \
  DECLARE_ANSWER(symbol)                                                       \
  DECLARE_ANSWER(by_address_##symbol)                                          \
  DEFINE_JUMP(routine, symbol, .answer = &kintsugi_answer_##symbol,            \
              .answer_by_address = &kintsugi_answer_by_address_##symbol, .type = type_of_letter(#type_[0]))
#include "blas/symbols.def"
#undef KINTSUGI_BLAS_UNCOVERED
#undef KINTSUGI_BLAS_GEMV
#undef KINTSUGI_BLAS_SYMV
#undef KINTSUGI_BLAS_GER
#undef KINTSUGI_BLAS_DOT
#undef KINTSUGI_BLAS_DSDOT
#undef KINTSUGI_BLAS_SDSDOT
#undef KINTSUGI_BLAS_DOT_SUB
#undef KINTSUGI_BLAS_COMPLEX_DOT

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
  call kintsugi_look_up_jump
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
#define ADDRESS(routine, convention, type, integer, symbol) &kintsugi_routine_##symbol,
#define KINTSUGI_BLAS_UNCOVERED(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_GEMV(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_SYMV(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_GER(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_DOT(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_DSDOT(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_SDSDOT(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_DOT_SUB(...) ADDRESS(__VA_ARGS__)
#define KINTSUGI_BLAS_COMPLEX_DOT(...) ADDRESS(__VA_ARGS__)
Jump* const all_routines[] = {
#include "blas/symbols.def"
};
#else
constexpr std::span<Jump* const> all_routines;
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
  print_line(
      {name, ": accuracy ", settings().accuracy,
       " is kept by level 3, gemv, symv, hemv, ger and dot alone; the next BLAS computes other routines of "
       "levels 1 and 2 (KINTSUGI_REPORT=- counts them)"});
}

// True if the next BLAS's function writes its complex result to its first argument, false if it returns the
// result in registers. `Element`: the type of the result. A function of the first kind computes 1 * 1 here.
// One of the second kind takes the result's memory, which is 0, for the length of the vectors, and reads
// nothing.
template <class Real>
bool returns_by_address(Code* next) {
  const CallUnderWay under_way;
  Real result[2] = {0, 0};
  const Real one[2] = {1, 0};
  const std::int64_t length = 1, increment = 1;
  reinterpret_cast<void (*)(void*, const void*, const void*, const void*, const void*, const void*)>(next)(
      result, &length, one, &increment, one, &increment);
  return result[0] != 0;
}

// Returns the function that answers calls of a routine with vectors. Without a next BLAS the caller is taken
// for one of gfortran.
Code* answer_of(const Jump& jump) {
  if (jump.answer_by_address == nullptr) return jump.answer;
  Code* const next = jump.next.load(std::memory_order_relaxed);
  const bool by_address = next != nullptr && (is_single(jump.type) ? returns_by_address<float>(next)
                                                                   : returns_by_address<double>(next));
  return by_address ? jump.answer_by_address : jump.answer;
}

}  // namespace

// Returns the function that the first call of a routine jumps to. A call from within a call of this library
// decides nothing for later ones.
extern "C" __attribute__((visibility("hidden"), used)) void* kintsugi_look_up_jump(Jump& routine) {
  Code* const next = reinterpret_cast<Code*>(find_next(routine.name));
  routine.next.store(next, std::memory_order_release);
  if (routine.answer != nullptr && calls_under_way == 0 && settings().answers_vectors(routine.type)) {
    Code* const answer = answer_of(routine);
    routine.target.store(answer, std::memory_order_release);
    return reinterpret_cast<void*>(answer);
  }
  if (next == nullptr) {
    print_line({routine.name, ": no BLAS has it"});
    std::_Exit(127);  // the status of the dynamic linker where a symbol is missing
  }
  if (calls_under_way != 0) return reinterpret_cast<void*>(next);
  if (asks_for_all_sums()) note_uncovered(routine.name);
  Code* const target = settings().report.empty() ? next : routine.count;
  routine.target.store(target, std::memory_order_release);
  return reinterpret_cast<void*>(target);
}

std::map<std::string, std::int64_t> uncovered_calls() {
  std::map<std::string, std::int64_t> calls;
  for (const Jump* routine : all_routines)
    if (const std::int64_t count = routine->calls.load(std::memory_order_relaxed); count > 0)
      calls[routine->name] = count;
  return calls;
}

std::string uncovered_sentence() {
  std::map<std::string_view, std::int64_t> calls;
  for (const Jump* routine : all_routines)
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
  for (Jump* routine : all_routines) routine->calls.store(0, std::memory_order_relaxed);
}

}  // namespace kintsugi::blas
