// Answers a call of a level-3 routine: checks it, then divides it into emulated products and smaller calls of
// cuBLAS, or forwards the whole call.
#pragma once

#include "cublas/answer.hpp"
#include "routine.hpp"

namespace kintsugi::cublas {

// Reference to a callable that calls the real routine with arguments of the caller's types; it must outlive
// this object.
class ForwardRoutine {
 public:
  template <class Callable>
  explicit ForwardRoutine(const Callable& callable)
      : callable_(&callable), call_([](const void* pointer, const RoutineCall& call) {
          return (*static_cast<const Callable*>(pointer))(call);
        }) {}
  int operator()(const RoutineCall& call) const { return call_(callable_, call); }

 private:
  const void* callable_;
  int (*call_)(const void*, const RoutineCall&);
};

// Returns the status of the call. Enqueues work in the call's stream and never waits for the device.
int answer(const Symbol& symbol, Handle handle, const RoutineCall& call, const ForwardRoutine& forward);

}  // namespace kintsugi::cublas
