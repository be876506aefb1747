// Answer to an intercepted call: it is checked and decided, then emulated or forwarded to the real cuBLAS.
#pragma once

#include <string>

#include "call.hpp"
#include "decision.hpp"
#include "real.hpp"

namespace kintsugi::cublas {

// Reference to a callable that calls the real function with the caller's arguments; it must outlive this
// object.
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

// True if a call of this thread may be emulated or has to be recorded. False for calls that come from within
// a call of this library, and under settings that neither emulate nor record anything: such calls are
// forwarded at once.
bool intercepts();

// Source of the things on which a call depends besides its arguments: the stream, the pointer and math modes,
// an epilogue. Each member function returns the reason for which cuBLAS must answer the call; nullptr: there
// is none.
class Origin {
 public:
  Origin() = default;
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  virtual ~Origin() = default;

  // Reads the stream and the pointer mode.
  virtual const char* read(CallState& state) const = 0;
  // Looks for arithmetic other than that of the types, such as TF32, for which the caller asked.
  virtual const char* reason_in_arithmetic(kintsugi_type type) const = 0;
  // Enqueues the steps before an emulated product, such as the copy of a bias into C. Whatever they have
  // written into C, cuBLAS overwrites when it answers the call.
  virtual const char* enqueue_before(const CallState& state) const = 0;
  // Enqueues the steps after an emulated product. If they fail, cuBLAS answers the call and overwrites C.
  virtual const char* enqueue_after(const CallState&) const { return nullptr; }
};

// Origin of functions whose handle has the stream and the modes.
class HandleOrigin : public Origin {
 public:
  explicit HandleOrigin(Handle handle) : handle_(handle) {}

  const char* read(CallState& state) const override;
  const char* reason_in_arithmetic(kintsugi_type type) const override;
  const char* enqueue_before(const CallState&) const override { return nullptr; }

 private:
  Handle handle_;
};

// While an object exists, intercepts() is false in this thread: its calls come from within the library.
class CallUnderWay {
 public:
  CallUnderWay();
  ~CallUnderWay();
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;
};

// Reads everything that a plan depends on; returns the reason for which cuBLAS must answer, or nullptr.
const char* read_state(const Origin& origin, CallState& state);

// Enqueues the emulated product. Returns ""; or the failure, after which the library has written nothing to
// C. The report of `handle`, unless it is nullptr, will describe the execution.
std::string emulate(const Decision& decision, const Call& call, const CallState& state,
                    kintsugi_handle handle = nullptr);

// Under the policy `force` prints on stderr that an emulation does not run, and ends the program with
// KINTSUGI_STRICT=1. Does nothing under other policies.
void report_if_forced(const char* symbol, const std::string& why);

// Answers the call and returns its status. Enqueues work in the call's stream and never waits for the device.
int answer(const Symbol& symbol, const Origin& origin, const Call& call, const Forward& forward);

// Like answer() above, for functions with a handle.
int answer(const Symbol& symbol, Handle handle, const Call& call, const Forward& forward);

}  // namespace kintsugi::cublas
