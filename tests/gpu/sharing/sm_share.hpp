// Limits a product to some SMs of the device: another kernel holds the others, or the stream belongs to a
// green context.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdint>

#include "gpu/calls/device_stream.hpp"
#include "tools/measure/probes/probe_kernels.hpp"

namespace kintsugi::test {

// Occupies that many SMs while it exists, for 30 s at most: one thread block on each, with all of the SM's
// shared memory.
class HeldSms {
 public:
  explicit HeldSms(int count) : released_(std::vector<std::uint32_t>{0}) {
    wait_for_uploads();
    constexpr std::uint64_t max_nanoseconds = 30'000'000'000;
    measure::launch_probe(stream_, measure::probe_kernel("probe_hold", "hold_sms"), {count, 1, 220 << 10},
                          released_.data(), max_nanoseconds);
  }
  ~HeldSms() { release(); }
  HeldSms(const HeldSms&) = delete;
  HeldSms& operator=(const HeldSms&) = delete;

  void release() {
    static constexpr std::uint32_t yes = 1;
    core::cuda::copy_to_device(copy_stream_.queue_of_engine(), released_.data(), &yes, sizeof yes);
    cuda::check(cuda::driver().stream_synchronize(stream_.native()), "cuStreamSynchronize");
  }

 private:
  struct CopyStream : Stream {
    core::Queue queue_of_engine() const { return {core::QueueKind::cuda, get()}; }
  };

  DeviceArray<std::uint32_t> released_;
  measure::DeviceStream stream_;
  CopyStream copy_stream_;
};

// A function of the CUDA driver that the library itself does not load.
template <class Function>
Function driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

// A stream that runs on only that many SMs of the device (CUDA driver API: green contexts).
class GreenStream {
 public:
  explicit GreenStream(unsigned sms) {
    prepare_device();
    // CUdevResource; only the driver reads its contents.
    struct alignas(8) Resource {
      std::array<unsigned char, 512> bytes{};
    };
    using GetResource = int (*)(cuda::Device, Resource*, int);
    using Split = int (*)(Resource*, unsigned*, const Resource*, Resource*, unsigned, unsigned);
    using Describe = int (*)(void**, Resource*, unsigned);
    using Create = int (*)(void**, void*, cuda::Device, unsigned);
    using CreateStream = int (*)(cuda::Stream*, void*, unsigned, int);
    constexpr int sm_resource = 1;
    constexpr unsigned default_stream = 1;
    constexpr unsigned non_blocking = 1;
    Resource all, part, rest;
    unsigned groups = 1;
    void* description = nullptr;
    const cuda::Device device = cuda::current_device();
    const auto call = [](auto function, auto... arguments) {
      return function != nullptr && function(arguments...) == 0;
    };
    const bool made =
        call(driver_function<GetResource>("cuDeviceGetDevResource"), device, &all, sm_resource) &&
        call(driver_function<Split>("cuDevSmResourceSplitByCount"), &part, &groups, &all, &rest, 0U, sms) &&
        call(driver_function<Describe>("cuDevResourceGenerateDesc"), &description, &part, 1U) &&
        call(driver_function<Create>("cuGreenCtxCreate"), &context_, description, device, default_stream);
    if (made) {
      call(driver_function<CreateStream>("cuGreenCtxStreamCreate"), &stream_, context_, non_blocking, 0);
    }
  }
  ~GreenStream() {
    if (stream_ != nullptr) cuda::driver().stream_destroy(stream_);
    using Destroy = int (*)(void*);
    if (context_ != nullptr) driver_function<Destroy>("cuGreenCtxDestroy")(context_);
  }
  GreenStream(const GreenStream&) = delete;
  GreenStream& operator=(const GreenStream&) = delete;

  bool exists() const { return stream_ != nullptr; }
  cuda::Stream get() const { return stream_; }
  kintsugi_queue queue() const { return {KINTSUGI_QUEUE_CUDA, 0, stream_}; }

 private:
  void* context_ = nullptr;
  cuda::Stream stream_ = nullptr;
};

// A stream of the highest or of the lowest priority.
class PriorityStream {
 public:
  enum class Priority { lowest, highest };

  explicit PriorityStream(Priority priority) {
    prepare_device();
    int range[2] = {};  // lowest, highest
    driver_function<int (*)(int*, int*)>("cuCtxGetStreamPriorityRange")(range, range + 1);
    constexpr unsigned non_blocking = 1;
    cuda::check(driver_function<int (*)(cuda::Stream*, unsigned, int)>("cuStreamCreateWithPriority")(
                    &stream_, non_blocking, range[priority == Priority::lowest ? 0 : 1]),
                "cuStreamCreateWithPriority");
  }
  ~PriorityStream() { cuda::driver().stream_destroy(stream_); }
  PriorityStream(const PriorityStream&) = delete;
  PriorityStream& operator=(const PriorityStream&) = delete;

  cuda::Stream get() const { return stream_; }
  kintsugi_queue queue() const { return {KINTSUGI_QUEUE_CUDA, 0, stream_}; }

 private:
  cuda::Stream stream_ = nullptr;
};

// True if all work of the stream ends within that many seconds.
bool ends_within(cuda::Stream stream, double seconds);

}  // namespace kintsugi::test
