// Device memory that the library allocates: buffers, reports, and operands kept for later calls.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "engines/cuda/device.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/cuda/transfers.hpp"
#include "execute/execute.hpp"
#include "planner/offload.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Device memory from the plan's allocator; from the engine if the plan has none. It is allocated in the
// current context, and freed in the same context in the order of the queue. If work for the queue is
// captured, the engine's memory stays the graph's; `graph_limit` is that of DeviceMemory::allocate().
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const Plan& plan, const Queue& queue, std::size_t bytes, std::size_t graph_limit = 0);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (pointer_ != nullptr) free();
  }

  void* pointer() const { return pointer_; }  // nullptr: the allocation failed, or bytes() is 0
  std::size_t bytes() const { return bytes_; }
  // Makes the destructor free the memory without the queue, which may be destroyed before the buffer. The
  // owner must wait for the device before it destroys the buffer.
  void forget_queue();

 private:
  void free() noexcept;

  Allocator allocator_;
  const Engine* engine_ = nullptr;
  DeviceContext context_;
  Queue queue_;
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
};

// Frees everything in device memory, and pinned memory, that is kept for later calls: freed workspaces,
// graphs, streams, and the operands that no call uses.
void release_device_caches() noexcept;

// Allocates device memory. Fails with out_of_memory; `what` names the memory in the message.
DeviceBuffer allocate_on_device(const Plan& plan, std::size_t bytes, const char* what);

// Waits for the device and adds the device's counts of an execution to the report. Precondition: the context
// of the memory `device` is current.
void read_device_report(const Plan& plan, const DeviceReport* device, Report& report);

// Memory for a device's report, in the context that is current when the object is constructed.
class DeviceReportMemory {
 public:
  DeviceReportMemory();
  DeviceReportMemory(const DeviceReportMemory&) = delete;
  DeviceReportMemory& operator=(const DeviceReportMemory&) = delete;
  // Neither waits nor frees, since a stream may be captured. The memory is kept for the next report in the
  // context.
  ~DeviceReportMemory();

  DeviceReport* get() const { return memory_; }
  const DeviceContext& context() const { return context_; }
  // Waits for the device and adds its counts to the report. The report's plan must be set. Fails with
  // device_error if the context was destroyed.
  void read(Report& report) const;

 private:
  DeviceContext context_;
  DeviceReport* memory_;
};

// Memory for the reports of one handle: one report for each context in which the handle was used, since
// kernels write only into memory of their own context.
class DeviceReports {
 public:
  // Returns the memory in the calling thread's context, which the first call in the context allocates. Fails
  // with invalid_argument if the allocation would break a capture of the queue's stream.
  std::shared_ptr<const DeviceReportMemory> of_caller(const Queue& queue);

 private:
  std::vector<std::shared_ptr<const DeviceReportMemory>> reports_;
};

// ---------------------------------------------------------------- operands kept for later calls

// Operands that stay in device memory after an offloaded call, because the caller said that it does not
// change them.

// Identifies a kept operand: the elements of the host that were copied, and the device with the copy.
struct KeptOperandKey {
  const void* host = nullptr;
  std::int64_t ld = 0;
  bool rows_are_lines = false;
  std::size_t element_bytes = 0;
  Interval vectors;
  std::int64_t inner = 0;
  std::int64_t parts = 1;  // parts of the operand that are stored one behind the other
  DeviceContext context;

  friend bool operator==(const KeptOperandKey&, const KeptOperandKey&) = default;
};

// A copy of a whole operand, stored like a strip.
struct KeptOperand {
  KeptOperandKey key;
  DeviceBuffer memory;
};

// Takes the operand out of the kept operands. Returns nothing if the operand is not kept, or if another call
// uses it.
std::optional<KeptOperand> take_kept_operand(const KeptOperandKey& key);

// Keeps an operand for later calls, in place of an older copy. Precondition: no work on the device uses the
// operand any more.
void keep_operand(KeptOperand operand);

// Frees the operands that no call uses. Returns false if there were none.
bool release_kept_operands() noexcept;

}  // namespace kintsugi::core
