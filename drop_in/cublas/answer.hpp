// Answers an intercepted call: checks it, decides on it, then emulates it or forwards it to the real cuBLAS.
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

// True if a call of this thread may be emulated or must be recorded. Other calls are forwarded at once: calls
// that come from within a call of this library, and all calls under settings that neither emulate nor record.
bool intercepts();

// Source of what a call depends on besides its arguments: stream, pointer mode, math mode, epilogue. Each
// member function returns nullptr, or the reason why cuBLAS must answer the call.
class Origin {
 public:
  Origin() = default;
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  virtual ~Origin() = default;

  // Reads the stream and the pointer mode.
  virtual const char* read(CallState& state) const = 0;
  // Checks whether the caller asked for an arithmetic such as TF32 instead of the arithmetic of the types.
  virtual const char* reason_in_arithmetic(kintsugi_type type) const = 0;
  // Enqueues the steps before an emulated product, such as the copy of a bias into C. These steps may write
  // C: if the emulation then fails, cuBLAS answers the call and overwrites C.
  virtual const char* enqueue_before(const CallState& state) const = 0;
  // Enqueues the steps after an emulated product. If they fail, cuBLAS answers the call and overwrites C.
  virtual const char* enqueue_after(const CallState&) const { return nullptr; }
  // True if the call is alpha A B + beta C without bias, activation or scales.
  virtual bool computes_product(kintsugi_type type) const = 0;
};

// Origin of functions whose handle has the stream and the modes.
class HandleOrigin : public Origin {
 public:
  explicit HandleOrigin(Handle handle) : handle_(handle) {}

  const char* read(CallState& state) const override;
  const char* reason_in_arithmetic(kintsugi_type type) const override;
  const char* enqueue_before(const CallState&) const override { return nullptr; }
  bool computes_product(kintsugi_type) const override { return true; }

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

// Enqueues the emulated product. Returns "", or the reason of a failure; after a failure C is not written. If
// `handle` is not nullptr, its report will describe the execution.
std::string emulate(const Decision& decision, const Call& call, const CallState& state,
                    kintsugi_handle handle = nullptr);

// Tells the user that an emulation does not run that the settings ask for: a line on stderr for each call
// under the policy `force`, else for the first one. Ends the program if KINTSUGI_STRICT=1.
void note_failure(const char* symbol, const std::string& why);

// Tells the user, in the same way, if the decision has no plan or does not keep the settings.
void note_decision(const char* symbol, const Decision& decision);

// Answers the call and returns its status. Enqueues work in the call's stream and never waits for the device.
int answer(const Symbol& symbol, const Origin& origin, const Call& call, const Forward& forward);

// Like answer() above, for functions with a handle.
int answer(const Symbol& symbol, Handle handle, const Call& call, const Forward& forward);

}  // namespace kintsugi::cublas
