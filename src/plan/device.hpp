// The way of a call whose matrices lie in a device's memory: ranges, choice, split, multiply, recombine as steps in a queue.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engines/device.hpp"
#include "plan/execute.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

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

// An operand in device memory, split once: its slices by the plan's first rung, with their ranges, and the original or a
// copy of it, which native products and special values are read from.
struct DevicePrepared {
  struct Entry {
    VectorRange* ranges = nullptr;
    Slices slices;
  };

  explicit DevicePrepared(const DeviceEngine& of) : engine(&of) {}
  DevicePrepared(const DevicePrepared&) = delete;
  DevicePrepared& operator=(const DevicePrepared&) = delete;
  ~DevicePrepared();  // waits for the device

  const DeviceEngine* engine;
  DeviceMatrix matrix;
  std::int64_t count = 0;      // entries of the batch that it holds
  SplitRule rule{};            // of the slices, where there are any
  std::vector<Entry> entries;  // of the batch; none for a native plan
  DeviceBlock copy;            // empty where the original is borrowed
  DeviceBlock memory;
};

// What execution takes of a workspace.
std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking);

// Nothing waits, but for a queue of kind host; what the device finds out goes to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

Prepared prepare_on_device(const Plan& plan, Side side, const void* data, bool borrow);

// In device memory, all zero; freed when the device is done.
std::shared_ptr<DeviceReport> make_device_report(const Engine& engine);

// Waits for the device and adds what it found out.
void read_device_report(const Engine& engine, const DeviceReport* device, Report& report);

// The matrices of a problem as the device's steps read them.
DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
DeviceMatrix device_result(const Problem& problem, const void* data);

}  // namespace kintsugi::core
