// Device memory that the library takes for itself: blocks, and what the device reports.
#pragma once

#include <cstddef>
#include <memory>

#include "engines/device.hpp"
#include "plan/execute.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

// Rows and columns of sums in device memory: aligned for any of the vendor's kernels.
inline constexpr std::int64_t sums_multiple = 16;

// Device memory of the plan's allocator, or else the engine's own; given back in the order of the queue.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(const Plan& plan, const Queue& queue, std::size_t bytes);
  DeviceBlock(DeviceBlock&& other) noexcept;
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock();

  void* pointer() const { return pointer_; }  // nullptr: there was nothing
  // Its owner waits for the device before it goes, whatever became of the queue.
  void wait_before_freeing();
  std::size_t bytes() const { return bytes_; }

 private:
  Allocator allocator_;
  const DeviceEngine* engine_ = nullptr;
  Queue queue_;
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
};

// Fails with out_of_memory, saying for what.
DeviceBlock allocate_on_device(const Plan& plan, std::size_t bytes, const char* what);

// In device memory, all zero; freed when the device is done.
std::shared_ptr<DeviceReport> make_device_report(const Engine& engine);

// Waits for the device and adds what it found out.
void read_device_report(const Engine& engine, const DeviceReport* device, Report& report);

}  // namespace kintsugi::core
