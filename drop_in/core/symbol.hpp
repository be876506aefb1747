// The library that the program would have called without the drop-in: the next BLAS, or the real cuBLAS.
#pragma once

#include <atomic>
#include <string_view>

#include "settings.hpp"

namespace kintsugi::drop_in {

// Finds the function of that name in the library that is hidden by the drop-in; nullptr if there is none.
// Each drop-in defines where it looks.
void* find_next(const char* name);

// Looks in the program's search order behind the drop-in.
void* find_behind(const char* name);
// Looks in loaded libraries whose path `is_searched` accepts, also in those that were loaded with RTLD_LOCAL,
// as by Python.
void* find_in_loaded(const char* name, bool (*is_searched)(std::string_view path));
// Looks in a library and in those that it needs.
void* find_in(void* library, const char* name);

// True for a function of the drop-in itself.
bool is_own(const void* function);

// Returns the path of the file that defines `function`; "" if the path is not known.
const char* file_of(const void* function);

// An exported name and the function of that name in the hidden library, which is looked up at the first use.
// The constructor is constexpr because another library's constructor may call a routine before any
// constructor of this library has run.
class Symbol {
 public:
  // `routine`: name of the routine as xerbla spells it, "DGEMM ", "CGEMM3M".
  constexpr explicit Symbol(const char* name, const char* routine = "") : name_(name), routine_(routine) {}

  const char* name() const { return name_; }
  const char* routine() const { return routine_; }

  // Function by which the hidden library says how many threads it would use now. Kept by whoever finds it.
  std::atomic<int (*)()> get_threads = nullptr;

  template <class Function>
  Function* next() {
    return reinterpret_cast<Function*>(next_address());
  }

 private:
  // Two threads may both look the function up. Both find the same one. The next call repeats a failed look-up
  // in cuBLAS, since the program may load cuBLAS later.
  void* next_address() {
    if (!looked_up_.load(std::memory_order_acquire)) {
      void* const found = find_next(name_);
      next_.store(found, std::memory_order_relaxed);
      looked_up_.store(found != nullptr || !this_drop_in.is_cublas, std::memory_order_release);
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

// Reference to a callable, which must outlive it. `Forward` calls the hidden library with the caller's
// arguments.
template <class Signature>
class Reference;
template <class Result, class... Arguments>
class Reference<Result(Arguments...)> {
 public:
  template <class Callable>
  explicit Reference(const Callable& callable)
      : callable_(&callable), call_([](const void* pointer, Arguments... arguments) -> Result {
          return (*static_cast<const Callable*>(pointer))(arguments...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(callable_, arguments...); }

 private:
  const void* callable_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace kintsugi::drop_in
