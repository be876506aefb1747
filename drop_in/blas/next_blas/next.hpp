// The BLAS that the program would have called without this library.
#pragma once

#include <atomic>
#include <cstddef>

namespace kintsugi::blas {

// The function of that name behind this library: the next one in the program's search order; else that of a
// library which was loaded with RTLD_LOCAL, as Python's are; else that of libblas.so.3. nullptr: there is
// none.
void* find_next(const char* name);

// Path of the file that defines `function`; "" where it is not known.
const char* file_of(const void* function);

// An exported name and the function behind it, looked up at its first use. Constant initialization: a call
// may come from another library's constructor.
class Symbol {
 public:
  // The routine in the spelling of xerbla: "DGEMM ", "CGEMM3M".
  constexpr Symbol(const char* name, const char* routine) : name_(name), routine_(routine) {}

  const char* name() const { return name_; }
  const char* routine() const { return routine_; }

  template <class Function>
  Function* next() {
    return reinterpret_cast<Function*>(next_address());
  }

 private:
  void* next_address() {
    if (!looked_up_.load(std::memory_order_acquire)) {
      // Two threads may both look it up, and find the same.
      next_.store(find_next(name_), std::memory_order_relaxed);
      looked_up_.store(true, std::memory_order_release);
    }
    return next_.load(std::memory_order_relaxed);
  }

  const char* name_;
  const char* routine_;
  std::atomic<void*> next_ = nullptr;
  std::atomic<bool> looked_up_ = false;
};

// A call of an exported name, and the address to which it returns.
struct Invocation {
  Symbol& symbol;
  const void* return_address;
};

}  // namespace kintsugi::blas
