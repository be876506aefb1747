// Device memory that the library takes for itself: blocks, and what the device reports.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engines/device.hpp"
#include "engines/device_context.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Device memory of the plan's allocator, or else the engine's own, in the context that was current; given
// back there, in the order of the queue.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const Plan& plan, const Queue& queue, std::size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  void* pointer() const { return pointer_; }  // nullptr: there was nothing
  // Its owner waits for the device before it goes, whatever became of the queue.
  void wait_before_freeing();
  std::size_t bytes() const { return bytes_; }

 private:
  Allocator allocator_;
  const Engine* engine_ = nullptr;
  DeviceContext context_;
  Queue queue_;
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
};

// Fails with out_of_memory, saying for what.
DeviceBuffer allocate_on_device(const Plan& plan, std::size_t bytes, const char* what);

// Waits for the device and adds what it found out. The context of that memory is the calling thread's.
void read_device_report(const Engine& engine, const DeviceReport* device, Report& report);

// Memory for what a device has to report, in the context that is current when it is made.
class DeviceReportMemory {
 public:
  explicit DeviceReportMemory(const Engine& engine);
  DeviceReportMemory(const DeviceReportMemory&) = delete;
  DeviceReportMemory& operator=(const DeviceReportMemory&) = delete;
  // Neither waits nor frees, since a stream may be under capture: the memory is kept for the context's next
  // report.
  ~DeviceReportMemory();

  DeviceReport* get() const { return memory_; }
  const DeviceContext& context() const { return context_; }
  // Waits for the device. Fails with device_error where the context is gone.
  void read(Report& report) const;

 private:
  const Engine* engine_;
  DeviceContext context_;
  DeviceReport* memory_;
};

// The reports of one handle, one for each context that it served: kernels write into memory of their own
// context alone.
class DeviceReports {
 public:
  // That of the calling thread's context. It is made when it is first asked for, which fails with
  // invalid_argument where a capture of the queue's stream would not survive that.
  std::shared_ptr<const DeviceReportMemory> of_caller(const Engine& engine, const Queue& queue);

 private:
  std::vector<std::shared_ptr<const DeviceReportMemory>> reports_;
};

}  // namespace kintsugi::core
