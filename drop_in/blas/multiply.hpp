// Decides on one product, and emulates or forwards it.
#pragma once

#include <string>

#include "call.hpp"
#include "next_blas/next.hpp"
#include "report/record.hpp"

namespace kintsugi::blas {

// Reference to a callable that calls the next BLAS. It returns false if the next BLAS lacks the routine. The
// callable must outlive the Forward.
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

// Computes a gemm whose arguments are right, emulated or native as decide() says. Returns false if the
// decision is native. Throws std::bad_alloc only before C is written.
bool multiply(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome);

// Computes a gemm by the next BLAS; without a next BLAS, by Kintsugi's native product. Writes a line to
// stderr if Kintsugi's product fails.
void multiply_natively(const Symbol& symbol, const Call& call, const Forward& forward);

// Computes a product that belongs to another routine by the gemm of the next BLAS. Returns false if the next
// BLAS has no gemm, or if a size exceeds its 32-bit integers.
bool call_next_gemm(const Call& product);

}  // namespace kintsugi::blas
