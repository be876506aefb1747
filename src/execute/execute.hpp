// Executes plans.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/memory.hpp"
#include "base/status.hpp"
#include "execute/report.hpp"
#include "formats/double_double.hpp"
#include "planner/memory.hpp"
#include "planner/plan.hpp"
#include "split/ranges.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

struct DevicePrepared;  // execute/device/prepare.hpp
struct DeviceReport;    // engines/cuda/step_data.hpp

// An operand that is split once and used in many executions. It has a dense copy of the operand. It also has
// slices by the first candidate of its plan that accepts the operand's ranges, unless that candidate is
// native. The other operand of an execution may require a candidate with another split. The execution then
// splits the copy, so bits of C do not depend on the preparation. Prepared operands are immutable.
struct Prepared {
  struct Item {
    HostBuffer copy;  // vectors x k, dense, elements of the problem's type, not conjugated
    // Strides of the copy. A stride of the copy is 1 if and only if it is 1 in the original. Engines then
    // select the same native kernel, which gives the same bits.
    std::int64_t vector_stride;
    std::int64_t element_stride;
    std::vector<VectorRange> ranges;  // empty if the plan is native
    SplitRule rule;                   // split rule of the slices, if there are any
    HostBuffer slice_memory;
    Slices slices;
  };

  Side side;
  OperandType type;
  bool complex;
  bool conjugated;       // op was the conjugate transpose
  std::int64_t vectors;  // rows of op(A), columns of op(B)
  std::int64_t k;
  std::vector<Item> items;
  std::shared_ptr<const DevicePrepared>
      device{};  // set for an operand in device memory; `items` is then empty
};

// Value of alpha or beta for any element type.
class CallScalar {
 public:
  CallScalar(double value) : value_(value) {}
  CallScalar(const std::complex<double>& value) : value_(value) {}
  CallScalar(const std::complex<float>& value) : value_(value) {}
  CallScalar(const DoubleDouble& pair) : value_(normalized(pair).hi), low_(normalized(pair).lo) {}

  bool is_zero() const { return value_ == 0.0; }
  const std::complex<double>& value() const { return value_; }

  template <class T>
  T as() const {
    if constexpr (is_double_double<T>) {
      return {value_.real(), low_};
    } else if constexpr (is_complex<T>) {
      return T(value_);
    } else {
      return static_cast<T>(value_.real());
    }
  }

 private:
  std::complex<double> value_;
  double low_ = 0;  // low part of a double-double number
};

// Data of one call. alpha and beta are values of the problem's type.
struct Operands {
  CallScalar alpha = 1;
  CallScalar beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const Prepared* prepared_a = nullptr;
  const Prepared* prepared_b = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_size = 0;
  // The remaining members are for matrices in device memory.
  Queue queue;  // kind host: the plan's queue is used
  const void* device_alpha =
      nullptr;  // scalars in device memory; if they are set, alpha and beta are ignored
  const void* device_beta = nullptr;
  DeviceReport* device_report = nullptr;  // device memory for findings of the device
  // Kernels are launched one by one, not as a graph: the driver waits for a graph's execution before it takes
  // the arguments of the next one, and the thread may have other things to do.
  bool launches_singly = false;
};

// Returns the queue of an execution on a device.
inline const Queue& queue_of(const Plan& plan, const Operands& operands) {
  return operands.queue.kind == QueueKind::host ? plan.queue : operands.queue;
}

// Computes C = alpha * op(A) * op(B) + beta * C for all batch items. If it fails, it fails before the first
// product and leaves C unchanged; only a device may fail later. Precondition: the report is new.
void execute(const Plan& plan, const Operands& operands, Report& report);

// Checks the workspace that the caller gave. Fails with workspace_too_small or invalid_argument.
void check_workspace(const Plan& plan, const Operands& operands);

// Storage of a prepared operand's original: copied, or borrowed from the caller, who must keep it valid. Only
// an original in device memory can be borrowed.
enum class Original : std::uint8_t { copied, borrowed };

// Splits an operand for later executions.
Prepared prepare(const Plan& plan, Side side, const void* data, Original original);

// True if the prepared operand has slices for one of the plan's candidates. An execution then splits it again
// only if the other operand requires another candidate.
bool has_slices_of(const Plan& plan, const Prepared& prepared);

// Allocates the workspace of a call if the caller gave none: returns the plan's workspace as allocate(bytes)
// returns it: an object with pointer() and bytes(). If an allocation fails, makes `blocking` smaller, which
// does not change the bits of C, and tries again. Fails with out_of_memory if there is no memory for the
// smallest block. `allocator`: name of the allocator in the message.
template <class Allocate>
auto allocate_workspace(const Plan& plan, Blocking& blocking, const char* allocator,
                        const Allocate& allocate) {
  for (;;) {
    auto memory =
        allocate(blocking == plan.blocking ? plan.workspace_bytes : workspace_bytes(plan, blocking));
    if (memory.pointer() != nullptr || memory.bytes() == 0) return memory;
    const Blocking smaller = smaller_blocking(blocking, block_multiple(plan));
    if (smaller == blocking) {
      fail(Status::out_of_memory, "{} has no {} bytes for the smallest block of m = {}, n = {}, k = {}",
           allocator, memory.bytes(), plan.problem.m, plan.problem.n, plan.problem.k);
    }
    blocking = smaller;
  }
}

}  // namespace kintsugi::core
