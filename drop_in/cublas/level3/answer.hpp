// A call of a level-3 routine on its way: checked, divided into products that are emulated and calls that
// cuBLAS answers, or forwarded whole.
#pragma once

#include "cublas/answer.hpp"
#include "routine.hpp"

namespace kintsugi::cublas {

// A call of the real routine with arguments of the caller's types. Refers to a callable that lives as long as
// the call.
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
