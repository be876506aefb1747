#include "engines/cuda/common/transfers.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/common/contexts.hpp"

namespace kintsugi::core::cuda {

namespace {

Address address(const std::byte* pointer) { return reinterpret_cast<Address>(pointer); }

CopySide side_on_host(const std::byte* first, std::size_t pitch) {
  return {.memory_type = memory_of_host, .host = first, .pitch = pitch};
}
CopySide side_on_device(const std::byte* first, std::size_t pitch) {
  return {.memory_type = memory_of_device, .device = address(first), .pitch = pitch};
}

class CudaTransfers final : public DeviceTransfers {
 public:
  int devices() const override { return driver().devices; }

  DeviceContext primary_context(int device) const override {
    Context context = nullptr;
    check(driver().primary_context_retain(&context, device_at(device)), "cuDevicePrimaryCtxRetain");
    unsigned long long id = 0;
    check(driver().context_id(context, &id), "cuCtxGetId");
    return {context, id, device};
  }

  std::size_t free_memory() const override {
    std::size_t free = 0;
    std::size_t all = 0;
    check(driver().memory_info(&free, &all), "cuMemGetInfo");
    return free;
  }

  std::byte* allocate_pinned(std::size_t bytes) const override {
    void* memory = nullptr;
    const Result result = driver().host_allocate(&memory, bytes, portable_host_memory);
    if (result == error_out_of_memory) return nullptr;
    check(result, "cuMemHostAlloc");
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) const noexcept override { driver().host_free(memory); }
  bool is_pinned(const void* host) const override {
    std::uint32_t type = 0;
    const auto host_address = reinterpret_cast<Address>(host);
    return driver().pointer_attribute(&type, pointer_memory_type, host_address) == 0 &&
           type == memory_of_host;
  }

  Queue create_stream() const override {
    constexpr unsigned non_blocking = 1;
    Stream stream = nullptr;
    check(driver().stream_create(&stream, non_blocking), "cuStreamCreate");
    return {QueueKind::cuda, stream};
  }
  void destroy_stream(const Queue& queue) const noexcept override { driver().stream_destroy(queue.stream); }

  DeviceEvent create_event() const override {
    Event event = nullptr;
    check(driver().event_create(&event, waiting_event_flags), "cuEventCreate");
    return event;
  }
  void destroy_event(DeviceEvent event) const noexcept override {
    driver().event_destroy(static_cast<Event>(event));
  }
  void record(const Queue& queue, DeviceEvent event) const override {
    check(driver().event_record(static_cast<Event>(event), queue.stream), "cuEventRecord");
  }
  void make_wait(const Queue& queue, DeviceEvent event) const override {
    check(driver().stream_wait_event(queue.stream, static_cast<Event>(event), 0), "cuStreamWaitEvent");
  }
  void wait_for(DeviceEvent event) const override {
    check(driver().event_synchronize(static_cast<Event>(event)), "cuEventSynchronize");
  }

  void copy_lines_to_device(const Queue& queue, const Lines<std::byte>& target,
                            const Lines<const std::byte>& source, std::size_t line_bytes,
                            std::size_t lines) const override {
    copy({side_on_host(source.first, source.pitch), side_on_device(target.first, target.pitch), line_bytes,
          lines},
         queue);
  }
  void copy_lines_to_host(const Queue& queue, const Lines<std::byte>& target,
                          const Lines<const std::byte>& source, std::size_t line_bytes,
                          std::size_t lines) const override {
    copy({side_on_device(source.first, source.pitch), side_on_host(target.first, target.pitch), line_bytes,
          lines},
         queue);
  }

 private:
  static void copy(const CopyLines& lines, const Queue& queue) {
    check(driver().copy_lines_async(&lines, queue.stream), "cuMemcpy2DAsync");
  }
};

}  // namespace

const DeviceTransfers& transfers() {
  static const CudaTransfers instance;
  return instance;
}

}  // namespace kintsugi::core::cuda
