// Device memory for tests, poisoned and with guards.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::test {

using core::cuda::prepare_device;

// `count` elements in device memory, `offset` elements off an aligned address, with a guard of 256 bytes
// before and after them. Every byte is 0xcd at first.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, std::size_t offset = 0)
      : count_(count), offset_(offset), bytes_(2 * guard + (count + offset) * sizeof(T)) {
    prepare_device();
    core::cuda::check(core::cuda::driver().memory_allocate(&base_, bytes_), "cuMemAlloc");
    core::cuda::check(core::cuda::driver().set_bytes_async(base_, poison, bytes_, nullptr),
                      "cuMemsetD8Async");
  }
  explicit DeviceArray(const std::vector<T>& values, std::size_t offset = 0)
      : DeviceArray(values.size(), offset) {
    if (!values.empty()) core::cuda::copy_to_device({}, data(), values.data(), values.size() * sizeof(T));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { core::cuda::driver().memory_free(base_); }

  T* data() const { return reinterpret_cast<T*>(base_ + guard) + offset_; }
  std::size_t size() const { return count_; }

  // Returns the elements after waiting for the default stream; fails the test if a guard was written to.
  std::vector<T> host() const {
    std::vector<unsigned char> all(bytes_);
    core::cuda::copy_to_host({}, all.data(), reinterpret_cast<const void*>(base_), bytes_);
    core::cuda::synchronize(core::Queue{});
    const std::size_t first = guard + offset_ * sizeof(T);
    const std::size_t last = first + count_ * sizeof(T);
    for (std::size_t i = 0; i < bytes_; ++i) {
      if ((i < first || i >= last) && all[i] != poison) {
        ADD_FAILURE() << "byte " << static_cast<long>(i) - static_cast<long>(first) << " of an array of "
                      << count_ * sizeof(T) << " bytes was written to";
        break;
      }
    }
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), all.data() + first, count_ * sizeof(T));
    return values;
  }

  static constexpr unsigned char poison = 0xcd;

 private:
  static constexpr std::size_t guard = 256;

  core::cuda::Address base_ = 0;
  std::size_t count_;
  std::size_t offset_;
  std::size_t bytes_;
};

}  // namespace kintsugi::test
