#include "engines/cuda/common/contexts.hpp"

#include <array>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"

namespace kintsugi::core::cuda {

namespace {

// Returns the regular context in which work of a stream runs; for the null stream that of the calling
// thread's context. The regular context of a green context is the primary context that it is part of. Returns
// nullptr if the driver is too old to answer.
Context regular_context(Stream stream) {
  Context regular = nullptr;
  GreenContext green = nullptr;
  if (driver().stream_contexts == nullptr) return nullptr;
  check(driver().stream_contexts(stream, &regular, &green), "cuStreamGetCtx_v2");
  return regular;
}

int device_number_of(Context context) {
  check(driver().context_push(context), "cuCtxPushCurrent");
  Device device = 0;
  const Result result = driver().context_device(&device);
  driver().context_pop(&context);
  check(result, "cuCtxGetDevice");
  return number_of(device);
}

// True if the two contexts, the calling thread's and the given one, have the same regular context.
bool shares_memory(Context context) {
  const Context regular_of_caller = regular_context(nullptr);
  if (regular_of_caller == nullptr || driver().context_push(context) != 0) return false;
  const Context regular_of_context = regular_context(nullptr);
  driver().context_pop(&context);
  return regular_of_caller == regular_of_context;
}

class CudaContexts final : public DeviceContexts {
 public:
  DeviceContext current() const override {
    Context context = ensure_context();
    const std::uint64_t id = current_context_id();
    // Every call asks three times. A context never changes its device, so the thread keeps the last answer.
    thread_local DeviceContext last;
    if (last.handle != context || last.id != id) last = {context, id, number_of(current_device())};
    return last;
  }

  bool enter(const DeviceContext& context) const noexcept override {
    auto* handle = static_cast<Context>(context.handle);
    unsigned long long id = 0;
    if (driver().context_id(handle, &id) != 0 || id != context.id) return false;
    return driver().context_push(handle) == 0;
  }
  void leave() const noexcept override {
    Context popped = nullptr;
    driver().context_pop(&popped);
  }

  bool enter_for_memory(int device, void* owner) const override {
    auto* context = static_cast<Context>(owner);
    Context present = nullptr;
    check(driver().context_current(&present), "cuCtxGetCurrent");
    if (present != nullptr && (present == context || (number_of(current_device()) == device &&
                                                      (context == nullptr || shares_memory(context)))))
      return false;
    if (context == nullptr)
      check(driver().primary_context_retain(&context, device_at(device)), "cuDevicePrimaryCtxRetain");
    check(driver().context_push(context), "cuCtxPushCurrent");
    return true;
  }

  bool reaches(const DeviceContext& context) const override {
    if (context == current()) return true;
    const Context regular_of_caller = regular_context(nullptr);
    if (regular_of_caller == nullptr) return false;
    const ContextScope scope(*this, context);  // `context` is current from here on
    if (!scope.entered()) return false;
    const Context regular_of_context = regular_context(nullptr);
    return regular_of_caller == regular_of_context;
  }

  void check_stream(const Queue& queue) const override {
    if (queue.stream == nullptr) return;
    Context caller_context = nullptr;
    Context stream_context = nullptr;
    check(driver().context_current(&caller_context), "cuCtxGetCurrent");
    // If the driver does not know the stream's context, the first launch into the stream reports the error.
    if (driver().stream_context(queue.stream, &stream_context) != 0 || stream_context == caller_context)
      return;
    const int device = device_number_of(stream_context);
    if (device != current().device) {
      fail(Status::invalid_argument, "the stream belongs to {}, and {} is current", describe(device),
           describe(current().device));
    }
    // A stream of a green context accepts work while the primary context of its device is current. So the
    // regular contexts are compared. With a driver that does not know them, both are nullptr, and the driver
    // itself refuses a wrong launch.
    if (regular_context(queue.stream) == regular_context(nullptr)) return;
    fail(Status::invalid_argument, "the stream belongs to another context of {} than the current one",
         describe(device));
  }

  // The null stream waits for all blocking streams of its context. So it must not be used while one of them
  // is captured.
  bool is_captured(const Queue& queue) const override { return may_be_captured(queue.stream); }

  std::string describe(int device) const override {
    return fmt::format("device {} ({})", device, describe_device(device_at(device)).text());
  }
};

}  // namespace

std::string DeviceDescription::text() const {
  return fmt::format("{}, compute capability {}.{}", name, major, minor);
}

DeviceDescription describe_device(Device device) {
  std::array<char, 256> name{};
  check(driver().device_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName");
  return {name.data(), device_attribute(compute_capability_major, device),
          device_attribute(compute_capability_minor, device)};
}

const DeviceContexts& contexts() {
  static const CudaContexts instance;
  return instance;
}

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
