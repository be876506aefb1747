// The device of a benchmark: its stream, its ceilings, and the operands in its memory.
#pragma once

#include <vector>

#include "support.hpp"
#include "tools/measure/machine/ceilings.hpp"

namespace kintsugi::tools {

// Fails, naming --memory, if there is no device on which products can be timed.
void require_device();

class BenchDevice {
 public:
  // Measures the ceilings on request, which takes some seconds.
  explicit BenchDevice(bool measures_ceilings);

  const measure::DeviceStream& stream() const { return stream_; }
  const measure::DeviceFacts& facts() const { return facts_; }
  const measure::DeviceMonitor& monitor() const { return monitor_; }
  // Returns members of the document (docs/schema/bench.schema.json).
  Json description() const;
  Json ceilings() const;  // null: none was measured
  // Returns the ceiling of a format in operations per second, or of "copy" in bytes per second; 0 if it was
  // not measured.
  double ceiling(const std::string& name) const;

 private:
  measure::DeviceStream stream_;
  measure::DeviceFacts facts_;
  measure::DeviceMonitor monitor_;
  std::vector<measure::Ceiling> ceilings_;
};

// Returns "power_watts" and "clock_mhz", null if unknown.
Json state_document(const measure::DeviceState& state);

template <class T>
struct BenchMatrices;

// Sets of A, B and C in device memory. Runs use one set after the other. There are enough sets, up to a
// limit, that a set is no longer in the cache when it is used again.
template <class T>
class DeviceOperands {
 public:
  DeviceOperands(const BenchDevice& device, const BenchMatrices<T>& matrices);

  const BenchDevice& device() const { return device_; }
  int sets() const { return sets_; }
  const T* a(int set) const { return elements(set, 0); }
  const T* b(int set) const { return elements(set, bytes_a_); }
  T* c(int set) const { return elements(set, bytes_a_ + bytes_b_); }

 private:
  T* elements(int set, std::size_t offset) const {
    return reinterpret_cast<T*>(memory_->data() + static_cast<std::size_t>(set) * set_bytes() + offset);
  }
  std::size_t set_bytes() const { return bytes_a_ + bytes_b_ + bytes_c_; }

  const BenchDevice& device_;
  std::size_t bytes_a_;
  std::size_t bytes_b_;
  std::size_t bytes_c_;
  int sets_ = 1;
  std::unique_ptr<measure::DeviceMemory> memory_;
};

}  // namespace kintsugi::tools
