// The real cuBLAS, which the program would have called without this library.
#pragma once

#include <atomic>

#include "api.hpp"

namespace kintsugi::cublas {

// Finds the function of that name in the real cuBLAS. The search goes through the program's search order
// behind this library, then through libcublas and libcublasLt if they were loaded with RTLD_LOCAL, as by
// Python. Returns nullptr if there is no such function.
void* find_real(const char* name);

// Returns the path of the file that defines `function`; "" if it is not known.
const char* file_of(const void* function);

// An exported name and the real function of that name, which is looked up at the first use. The constructor
// is constexpr because another library's constructor may call a function before any constructor of this
// library has run.
class Symbol {
 public:
  constexpr explicit Symbol(const char* name) : name_(name) {}

  const char* name() const { return name_; }

  // Returns the real function; nullptr if there is none. A failed look-up is repeated by the next call, since
  // the program may load cuBLAS later.
  template <class Function>
  Function* real() {
    void* found = real_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = find_real(name_);
      real_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> real_ = nullptr;
};

// Calls the real function and returns its status, or not_supported if there is no such function. The types of
// the arguments must be exactly those of the real declaration.
template <class... Arguments>
int call_real(Symbol& symbol, Arguments... arguments) {
  auto* const real = symbol.real<int(Arguments...)>();
  return real != nullptr ? real(arguments...) : not_supported;
}

}  // namespace kintsugi::cublas
