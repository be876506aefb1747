// Runs work in a thread whose stack is of a given size, and measures how much of the stack it takes.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace kintsugi::test {

// A thread's stack between two pages that nothing may touch. The thread-local variables of all libraries and
// the thread's own record lie in it, too.
class ThreadStack {
 public:
  explicit ThreadStack(std::size_t bytes) : bytes_(bytes) {
    mapped_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (mapped_ == MAP_FAILED || ::mprotect(first(), bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ThreadStack(const ThreadStack&) = delete;
  ThreadStack& operator=(const ThreadStack&) = delete;
  ~ThreadStack() { ::munmap(mapped_, bytes_ + 2 * page); }

  // Runs the work in a new thread on this stack.
  void run(void* (*work)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (::pthread_attr_init(&attributes) != 0 || ::pthread_attr_setstack(&attributes, first(), bytes_) != 0 ||
        ::pthread_create(&thread, &attributes, work, argument) != 0) {
      std::perror("a thread with a small stack");
      std::abort();
    }
    ::pthread_attr_destroy(&attributes);
    ::pthread_join(thread, nullptr);
  }

  std::byte* first() const { return mapped_ + page; }

 private:
  static constexpr std::size_t page = 4096;

  std::size_t bytes_;
  std::byte* mapped_;
};

// Runs the work in a new thread with a stack of so many bytes, which ends the program if they do not suffice.
inline void run_with_stack(std::size_t bytes, const std::function<void()>& work) {
  ThreadStack(bytes).run(
      [](void* pointer) -> void* {
        (*static_cast<const std::function<void()>*>(pointer))();
        return nullptr;
      },
      const_cast<std::function<void()>*>(&work));
}

// Returns the bytes of the stack that the work takes: down to the lowest byte that it writes. Bytes of arrays
// that it leaves unwritten below that are not seen.
inline std::size_t stack_bytes_of(const std::function<void()>& work) {
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;
  static constexpr std::byte paint{0xc5};
  struct Measurement {
    const std::function<void()>* work;
    std::byte* first;
    std::size_t taken;
  };
  const auto measure = [](void* pointer) -> void* {
    auto& x = *static_cast<Measurement*>(pointer);
    auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
    // 256 bytes stay free for this frame. Volatile, since the compiler sees no reader.
    for (volatile std::byte* byte = x.first; byte < here - 256; ++byte) *byte = paint;
    (*x.work)();
    const volatile std::byte* lowest = x.first;
    while (*lowest == paint) ++lowest;
    x.taken = static_cast<std::size_t>(here - lowest);
    return nullptr;
  };
  ThreadStack stack(stack_bytes);
  Measurement measurement{&work, stack.first(), 0};
  stack.run(measure, &measurement);
  return measurement.taken;
}

}  // namespace kintsugi::test
