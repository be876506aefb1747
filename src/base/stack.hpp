// The stack of calls: a call that finds little of its thread's stack left runs on a stack of its own.
//
// Programs start threads with stacks of 32 KiB, and some libc's with 128 KiB. Tiles and tables of a product
// take up to 250 KiB, a plan 60 KiB and OpenBLAS 50 KiB (measured by tests/support/painted_stack.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

// Bytes that suffice for each call and for each thread of its loops.
inline constexpr std::size_t enough_stack_bytes = std::size_t{512} << 10;

// Addresses of the calling thread's stack with enough bytes below them. There are none in a thread with a
// small stack, nor before the thread's first call has looked them up.
struct SufficientStack {
  std::uintptr_t lowest = 0;
  std::size_t bytes = 0;
  bool is_known = false;

  bool has(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - lowest < bytes; }
};
extern constinit thread_local SufficientStack sufficient_stack;

// Looks up the thread's stack at its first call. Returns true if enough of it is left below `address`; false,
// too, for stacks that threads do not know, as those of coroutines.
bool look_up_stack(const void* address);

// Calls run(argument), which must not throw, on a stack of 1 MiB. Returns false if there is no memory for it.
bool run_on_own_stack(void (*run)(void*), void* argument);

// Frees the stack that is kept for the next call.
void release_kept_stack();

// Calls work(), which must not throw. Returns false, without a call, if it needs a stack of its own and there
// is no memory for one.
template <class Work>
[[nodiscard]] inline bool run_with_enough_stack(Work& work) {
  const void* const here = __builtin_frame_address(0);
  if (!sufficient_stack.has(here) && !look_up_stack(here))
    return run_on_own_stack([](void* pointer) { (*static_cast<Work*>(pointer))(); }, &work);
  work();
  return true;
}

}  // namespace kintsugi::core
