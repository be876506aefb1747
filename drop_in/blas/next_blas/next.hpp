// The BLAS that the program would have called without this library.
#pragma once

#include <atomic>
#include <cstddef>

namespace kintsugi::blas {

// Finds the function of that name in another library. The search goes through the program's search order
// behind this library, then through libraries that were loaded with RTLD_LOCAL (as Python's are), then
// libblas.so.3. Returns nullptr if no library has the function.
void* find_next(const char* name);

// Returns the path of a loaded library that has a gemm under one of the names of this library; "" if there
// is none.
const char* loaded_blas();

// Returns the path of the file that defines `function`; "" if the path is not known.
const char* file_of(const void* function);

// An exported name and the function of that name in the next BLAS, which is looked up at the first use. The
// constructor is constexpr because another library's constructor may call a routine before any constructor of
// this library has run.
class Symbol {
 public:
  // `routine`: name of the routine as xerbla spells it, "DGEMM ", "CGEMM3M".
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
      // Two threads may both look the function up. Both find the same one.
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
