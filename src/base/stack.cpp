#include "base/stack.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <new>

namespace kintsugi::core {

constinit thread_local SufficientStack sufficient_stack;

bool look_up_stack(const void* address) {
  if (sufficient_stack.is_known) return sufficient_stack.has(address);
  sufficient_stack = {.lowest = 0, .bytes = SIZE_MAX, .is_known = true};  // without /proc no limit is known
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return true;
  void* first = nullptr;
  std::size_t bytes = 0;
  if (::pthread_attr_getstack(&attributes, &first, &bytes) == 0) {
    sufficient_stack.lowest = reinterpret_cast<std::uintptr_t>(first) + enough_stack_bytes;
    sufficient_stack.bytes = bytes > enough_stack_bytes ? bytes - enough_stack_bytes : 0;
  }
  ::pthread_attr_destroy(&attributes);
  return sufficient_stack.has(address);
}

namespace {

// Lies at the end of its memory. Below it is the stack, and below that a page that ends the program.
struct OwnStack {
  ucontext_t caller = {}, callee = {};
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
  std::fexcept_t exceptions = {};
};

constexpr std::size_t own_stack_bytes = 2 * enough_stack_bytes;
static_assert(sizeof(OwnStack) < own_stack_bytes - enough_stack_bytes);

std::atomic<OwnStack*> kept_stack = nullptr;

std::byte* memory_of(OwnStack* stack) { return reinterpret_cast<std::byte*>(stack + 1) - own_stack_bytes; }

OwnStack* new_stack() {
  if (OwnStack* const kept = kept_stack.exchange(nullptr)) return kept;
  void* const memory = ::mmap(nullptr, own_stack_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::mprotect(memory, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), PROT_NONE);
  return new (static_cast<std::byte*>(memory) + own_stack_bytes - sizeof(OwnStack)) OwnStack;
}

void unmap(OwnStack* stack) {
  if (stack != nullptr) ::munmap(memory_of(stack), own_stack_bytes);
}

// makecontext() passes numbers of the type int alone.
void enter(unsigned high, unsigned low) {
  auto* const stack = reinterpret_cast<OwnStack*>(std::uintptr_t{high} << 32 | low);
  stack->run(stack->argument);
  std::fegetexceptflag(&stack->exceptions, FE_ALL_EXCEPT);
}

}  // namespace

bool run_on_own_stack(void (*run)(void*), void* argument) {
  OwnStack* const stack = new_stack();
  if (stack == nullptr) return false;
  stack->run = run;
  stack->argument = argument;
  ::getcontext(&stack->callee);
  stack->callee.uc_link = &stack->caller;
  stack->callee.uc_stack.ss_sp = memory_of(stack);
  stack->callee.uc_stack.ss_size = own_stack_bytes - sizeof(OwnStack);
  const auto address = std::uint64_t{reinterpret_cast<std::uintptr_t>(stack)};
  ::makecontext(&stack->callee, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  ::swapcontext(&stack->caller, &stack->callee);
  std::fesetexceptflag(&stack->exceptions, FE_ALL_EXCEPT);  // swapcontext() has restored those from before
  unmap(kept_stack.exchange(stack));
  return true;
}

void release_kept_stack() { unmap(kept_stack.exchange(nullptr)); }

}  // namespace kintsugi::core
