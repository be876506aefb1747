// Runs a call: checks it, decides, and emulates or forwards it.
#pragma once

#include "call.hpp"
#include "next.hpp"

namespace kintsugi::blas {

// The caller's call to the next BLAS, unchanged; false: there is none behind this name. Refers to a callable
// that lives as long as the call.
class Forward {
 public:
  template <class Callable>
  explicit Forward(const Callable& callable)
      : callable_(&callable), call_([](const void* of) { return (*static_cast<const Callable*>(of))(); }) {}
  bool operator()() const { return call_(callable_); }

 private:
  const void* callable_;
  bool (*call_)(const void*);
};

// True if calls of this thread may be emulated now; else all go to the next BLAS, among them those that
// come from within a product of this library.
bool intercepts();

void multiply(const Symbol& symbol, const GemmCall& call, Forward forward);

}  // namespace kintsugi::blas
