// The real cuBLAS: the functions that the program would have called without this library.
#pragma once

#include <atomic>

#include "api.hpp"

namespace kintsugi::cublas {

// Returns the real function of that name: the next one in the program's search order; else the one of a
// loaded libcublas or libcublasLt, such as one that Python loaded with RTLD_LOCAL; nullptr if there is none.
void* find_real(const char* name);

// Returns the path of the file that defines `function`; "" if it is not known.
const char* file_of(const void* function);

// An exported name and the real function of that name, which is looked up at the first use. Objects are
// initialized at compile time, since a call may come from another library's constructor.
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

// Calls the real function with the caller's arguments, whose types must be exactly those that it declares;
// returns its status, or not_supported if there is no such function.
template <class... Arguments>
int call_real(Symbol& symbol, Arguments... arguments) {
  auto* const real = symbol.real<int(Arguments...)>();
  return real != nullptr ? real(arguments...) : not_supported;
}

}  // namespace kintsugi::cublas
