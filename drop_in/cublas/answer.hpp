// A call on its way: checked, decided, emulated or forwarded.
#pragma once

#include "call.hpp"
#include "real.hpp"

namespace kintsugi::cublas {

// A call of the real function with the caller's arguments. Refers to a callable that lives as long as the
// call.
class Forward {
 public:
  template <class Callable>
  explicit Forward(const Callable& callable)
      : callable_(&callable),
        call_([](const void* pointer) { return (*static_cast<const Callable*>(pointer))(); }) {}
  int operator()() const { return call_(callable_); }

 private:
  const void* callable_;
  int (*call_)(const void*);
};

// True if calls of this thread may be emulated now; else all are forwarded, among them those that come from
// within a call of this library.
bool intercepts();

// Returns the status of the call. Enqueues work in the handle's stream and never waits for the device.
int answer(const Symbol& symbol, Handle handle, const Call& call, const Forward& forward);

}  // namespace kintsugi::cublas
