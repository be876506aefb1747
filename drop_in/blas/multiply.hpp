// One product: decided, then emulated or forwarded.
#pragma once

#include <string>

#include "call.hpp"
#include "next_blas/next.hpp"
#include "report/record.hpp"

namespace kintsugi::blas {

// A call to the next BLAS; false: there is none behind this name. Refers to a callable that lives as long as
// the call.
class Forward {
 public:
  template <class Callable>
  explicit Forward(const Callable& callable)
      : callable_(&callable),
        call_([](const void* pointer) { return (*static_cast<const Callable*>(pointer))(); }) {}
  bool operator()() const { return call_(callable_); }

 private:
  const void* callable_;
  bool (*call_)(const void*);
};

// Computes a gemm whose arguments are right, as it is decided for its problem. Throws std::bad_alloc only
// while C is as it was.
void multiply(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome);

// A gemm by the next BLAS; where there is none behind this name, by the library's native product. A failure
// of both is a line on stderr.
void multiply_natively(const Symbol& symbol, const Call& call, const Forward& forward);

// The gemm of the next BLAS for a product that no caller wrote; false where there is none, or where a size
// exceeds the 32 bits of its integers.
bool call_next_gemm(const Call& product);

}  // namespace kintsugi::blas
