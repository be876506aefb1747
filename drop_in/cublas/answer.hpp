// Answers an intercepted call: checks it, decides on it, then emulates it or forwards it to the real cuBLAS.
// Enqueues work in the call's stream and never waits for the device.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "call.hpp"
#include "core/decision.hpp"
#include "core/intercept.hpp"
#include "core/record.hpp"
#include "device.hpp"

namespace kintsugi::cublas {

// State of the caller's handle and thread.
struct CallState {
  void* stream = nullptr;
  int pointer_mode = 0;  // cublasPointerMode_t, whose numbers are those of kintsugi_pointer_mode
  int device = 0;        // CUdevice of the current context
};

// Returns the decision on a call for which reason_to_forward() has no reason. While the stream is captured no
// plan is made, since the first plan creates a handle of cuBLAS, which allocates memory.
DecisionPointer decide(const Call& call, const CallState& state);

// Reference to a callable that calls the real function with the caller's arguments.
using Forward = Reference<int()>;

// Source of what a call depends on besides its arguments: stream, pointer mode, math mode, epilogue. Each
// member function that returns text returns nullptr, or the reason why cuBLAS must answer the call.
class Origin {
 public:
  Origin() = default;
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  virtual ~Origin() = default;

  // Reads the stream and the pointer mode.
  virtual const char* read(CallState& state) const = 0;
  // Reads the pointer mode, if that takes less time.
  virtual const char* read_pointer_mode(CallState& state) const { return read(state); }
  // Checks whether the caller asked for an arithmetic such as TF32 instead of the arithmetic of the types.
  virtual const char* reason_in_arithmetic(kintsugi_type type) const = 0;
  // True if the caller asked for cuBLAS's own emulation, which Kintsugi's contract answers.
  virtual bool requests_emulation(kintsugi_type) const { return false; }
  // Enqueues the steps before an emulated product, such as the copy of a bias into C. These steps may write
  // C: if the emulation then fails, cuBLAS answers the call and overwrites C.
  virtual const char* enqueue_before(const CallState&) const { return nullptr; }
  // Enqueues the steps after an emulated product. If they fail, cuBLAS answers the call and overwrites C, or
  // the call fails if cuBLAS would read the C that the product has overwritten.
  virtual const char* enqueue_after(const CallState&) const { return nullptr; }
  virtual bool can_repeat_after_product() const { return true; }
  // True if the call is alpha A B + beta C without bias, activation or scales.
  virtual bool computes_product(kintsugi_type) const { return true; }
};

// Origin of functions whose handle has the stream and the modes.
class HandleOrigin : public Origin {
 public:
  // `requests_emulation`: the compute type asks for cuBLAS's own emulation.
  explicit HandleOrigin(Handle handle, bool requests_emulation = false)
      : handle_(handle), requests_emulation_(requests_emulation) {}
  Handle handle() const { return handle_; }

  const char* read(CallState& state) const override;
  const char* reason_in_arithmetic(kintsugi_type type) const override;
  bool requests_emulation(kintsugi_type type) const override;

 private:
  Handle handle_;
  bool requests_emulation_;
};

// Origin of products by name.
class ProductOrigin final : public HandleOrigin {
 public:
  using HandleOrigin::HandleOrigin;
  const char* read_pointer_mode(CallState& state) const override;
};

// Answers the call of a product and returns its status.
int answer(const Invocation& invocation, const Origin& origin, const ProductCall& call,
           const Forward& forward);

// Reference to a callable that calls the real function for `count` groups from group `first` on.
using ForwardGroups = Reference<int(std::size_t first, std::size_t count)>;

// Answers a grouped batch, which has groups of products; each group has its own shape and scalars and is a
// batch by pointers. Groups that are not emulated go to cuBLAS in as few calls as the order of the groups
// allows. If no group is emulated, they go to cuBLAS in a single call.
int answer_groups(const Invocation& invocation, Handle handle, std::vector<ProductCall>& groups,
                  const ForwardGroups& forward);

// Reference to a callable that calls the real routine for a part of the caller's call.
using ForwardPart = Reference<int(const Call&)>;

// Answers a call of a level-3 routine other than a product: divides it into emulated products and smaller
// calls of cuBLAS, or forwards the whole call.
int answer_level3(const Invocation& invocation, Handle handle, const Call& call, const Forward& forward,
                  const ForwardPart& forward_part);

// Answers a routine with vectors: as an emulated product, or forwards the call.
int answer_vectors(const Invocation& invocation, Handle handle, const Call& call, const Forward& forward);

// Answers a product of cublasXt, whose matrices and scalars are in host memory, on all GPUs, or forwards it;
// select_xt_devices() and destroy_xt() call the real functions and note which handles have selected all GPUs.
int answer_xt(const Invocation& invocation, XtHandle handle, const Call& call, const Forward& forward);
int select_xt_devices(const Invocation& invocation, XtHandle handle, int count, int* devices);
int destroy_xt(const Invocation& invocation, XtHandle handle);

// Reads everything that a plan depends on; returns the reason for which cuBLAS must answer, or nullptr.
const char* read_state(const Origin& origin, CallState& state);

// Enqueues the emulated product. Returns "", or the reason of a failure; after a failure C is not written. If
// `handle` is not nullptr, its report will describe the execution.
std::string emulate(const Decision& decision, const Call& call, const CallState& state,
                    kintsugi_handle handle = nullptr);

// Records a call, if calls are recorded. `programs`: names of the programs that the device selects from; "":
// cuBLAS multiplied. `reads_c`: beta is not known to be 0. `native_seconds`: CallOutcome::native_seconds.
void note(const Symbol& symbol, const Call& call, std::string_view programs, std::string_view why,
          bool failed = false, bool reads_c = true, double native_seconds = 0) noexcept;

// Turn of a call under KINTSUGI_VERIFY_SPEED. Emulation and cuBLAS take turns until both have been
// timed in 5 calls of the problem; then the one with the quickest call stays. A problem that is captured
// before keeps its emulation in later captures.
struct SpeedTurn {
  Timed timed = Timed::neither;  // native: cuBLAS must multiply
  std::string why = {};          // why it must
};
SpeedTurn speed_turn(const char* symbol, const Call& call, void* stream);

// Measures the time of a sampled call on the device, by two events. Of each problem the first 4 calls and
// then every 64th call are sampled, and the calls of its trial. No call is sampled if calls are not recorded,
// or while the stream is captured.
class CallSample {
 public:
  // Enqueues the first event. `symbol` must live as long as the program. `timed`: the side of the trial.
  CallSample(const char* symbol, const Call& call, void* stream, Timed timed = Timed::neither);
  ~CallSample();  // enqueues the second event
  CallSample(const CallSample&) = delete;
  CallSample& operator=(const CallSample&) = delete;

  // Returns the handle with which a sampled emulation must be executed, so that the handle's report describes
  // it; nullptr for other calls. The handle's first execution waits for the device.
  kintsugi_handle handle() const { return handle_; }
  void note_execution() { was_executed_ = true; }

 private:
  const char* symbol_;
  const Call& call_;
  void* stream_;
  Timed timed_;
  void* event_before_ = nullptr;  // nullptr: the call is not sampled
  void* event_after_ = nullptr;
  kintsugi_handle handle_ = nullptr;
  bool was_executed_ = false;  // true: a plan was executed with the handle
};

// A call whose error is measured; of a strided batch, its first product alone. Made before the call, it
// keeps a copy of C in device memory, as the call reads it.
class ExactComparison {
 public:
  // Begins a comparison if the call's error is to be measured (numbers_of_sample()). Does nothing under a
  // capture, for batches by pointers and for calls with an epilogue. The arguments must outlive the
  // comparison.
  ExactComparison(const Symbol& symbol, const Origin& origin, const ProductCall& call,
                  const CallState& state);

  // Computes the call exactly in the copy of C, waits for the device and records the error of the caller's C;
  // writes the product to files if the error exceeds the limit of KINTSUGI_DUMP. Must be called after the
  // call, with its status. Does nothing if the call failed or if the exact call cannot be computed.
  // `programs`: names of the programs that the device selects from; "": cuBLAS multiplied.
  void finish(int status, std::string_view programs) noexcept;

 private:
  bool compute_exactly() const;
  void dump(std::string_view programs, double error);

  const Symbol& symbol_;
  const ProductCall& call_;
  const CallState& state_;
  SampleNumbers numbers_;
  std::optional<Workspace> c_;  // nothing: the call is not measured
  std::vector<char> c_read_;    // C as the call reads it, if the call may be written to files
};

}  // namespace kintsugi::cublas
