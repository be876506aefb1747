#include "engines/cuda/device.hpp"

#include <array>

#include "base/status.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/common/memory_pool.hpp"
#include "engines/cuda/cublas.hpp"

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

}  // namespace

DeviceContext current_context() {
  Context context = ensure_context();
  const std::uint64_t id = current_context_id();
  // Every call asks several times. A context never changes its device, so the thread keeps the last answer.
  thread_local DeviceContext last;
  if (last.handle != context || last.id != id) last = {context, id, number_of(current_device())};
  return last;
}

DeviceContext primary_context(int device) {
  Context context = nullptr;
  check(driver().primary_context_retain(&context, device_at(device)), "cuDevicePrimaryCtxRetain");
  unsigned long long id = 0;
  check(driver().context_id(context, &id), "cuCtxGetId");
  return {context, id, device};
}

bool enter_context(const DeviceContext& context) noexcept {
  auto* handle = static_cast<Context>(context.handle);
  unsigned long long id = 0;
  if (driver().context_id(handle, &id) != 0 || id != context.id) return false;
  return driver().context_push(handle) == 0;
}

void leave_context() noexcept {
  Context popped = nullptr;
  driver().context_pop(&popped);
}

bool enter_for_memory(int device, void* owner) {
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

bool reaches(const DeviceContext& context) {
  if (context == current_context()) return true;
  const Context regular_of_caller = regular_context(nullptr);
  if (regular_of_caller == nullptr) return false;
  const ContextScope scope(context);  // `context` is current from here on
  if (!scope.entered()) return false;
  const Context regular_of_context = regular_context(nullptr);
  return regular_of_caller == regular_of_context;
}

void check_stream(const Queue& queue) {
  if (queue.stream == nullptr) return;
  Context caller_context = nullptr;
  Context stream_context = nullptr;
  check(driver().context_current(&caller_context), "cuCtxGetCurrent");
  // If the driver does not know the stream's context, the first launch into the stream reports the error.
  if (driver().stream_context(queue.stream, &stream_context) != 0 || stream_context == caller_context) return;
  const int device = device_number_of(stream_context);
  if (device != current_context().device) {
    fail(Status::invalid_argument, "the stream belongs to {}, and {} is current", text_of_device(device),
         text_of_device(current_context().device));
  }
  // A stream of a green context accepts work while the primary context of its device is current. So the
  // regular contexts are compared. With a driver that does not know them, both are nullptr, and the driver
  // itself refuses a wrong launch.
  if (regular_context(queue.stream) == regular_context(nullptr)) return;
  fail(Status::invalid_argument, "the stream belongs to another context of {} than the current one",
       text_of_device(device));
}

std::string DeviceDescription::text() const {
  return fmt::format("{}, compute capability {}.{}", name, major, minor);
}

DeviceDescription describe_device(Device device) {
  std::array<char, 256> name{};
  check(driver().device_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName");
  return {name.data(), device_attribute(compute_capability_major, device),
          device_attribute(compute_capability_minor, device)};
}

std::string text_of_device(int number) {
  return fmt::format("device {} ({})", number, describe_device(device_at(number)).text());
}

namespace {

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace

void prepare_device() {
  ensure_context();
  prepare_blas();
  prepare_pool();
}

std::byte* allocate(const Queue& queue, std::size_t bytes, std::size_t graph_limit) {
  ensure_context();
  Address result = 0;
  const CapturedStream captured = captured_stream(queue.stream);
  const Result status = captured.graph != nullptr ? allocate_for_graph(&result, bytes, captured, graph_limit)
                                                  : allocate_in_stream(&result, bytes, queue.stream);
  if (status == error_out_of_memory) return nullptr;
  check(status, captured.graph != nullptr ? "memory for a captured graph" : "cuMemAllocAsync");
  return reinterpret_cast<std::byte*>(result);
}

// The driver's result is ignored: an earlier call has caused and reported the error.
void deallocate(const Queue& queue, void* pointer) noexcept {
  if (deallocate_for_graph(address(pointer))) return;
  driver().memory_free_async(address(pointer), queue.stream);
}

void release_kept_memory() noexcept {
  release_graphs();
  release_graph_memory();
  trim_pools();
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t all = 0;
  check(driver().memory_info(&free, &all), "cuMemGetInfo");
  return free;
}

void copy_to_device(const Queue& queue, void* target, const void* host, std::size_t bytes) {
  LaunchRecording::issue_recorded();
  check(driver().copy_to_device_async(address(target), host, bytes, queue.stream), "cuMemcpyHtoDAsync");
}

void copy_to_host(const Queue& queue, void* host, const void* source, std::size_t bytes) {
  LaunchRecording::issue_recorded();
  check(driver().copy_to_host_async(host, address(source), bytes, queue.stream), "cuMemcpyDtoHAsync");
}

void copy_on_device(const Queue& queue, void* target, const void* source, std::size_t bytes) {
  LaunchRecording::issue_recorded();
  check(driver().copy_on_device_async(address(target), address(source), bytes, queue.stream),
        "cuMemcpyDtoDAsync");
}

void clear(const Queue& queue, void* target, std::size_t bytes) {
  static const KernelName kernel{"clear", "clear_bytes", waits_for_grid_dependency};
  constexpr std::size_t bytes_of_block = 4096;
  constexpr std::size_t max_bytes_of_kernel = 256 * bytes_of_block;
  constexpr std::int64_t threads = 256;
  if (bytes > max_bytes_of_kernel) {
    LaunchRecording::issue_recorded();  // cuMemset is not recorded; earlier launches must come first
    return check(driver().set_bytes_async(address(target), 0, bytes, queue.stream), "cuMemsetD8Async");
  }
  const auto blocks = static_cast<std::int64_t>((bytes + bytes_of_block - 1) / bytes_of_block);
  launch(kernel, {.x = blocks}, threads, no_shared_bytes, queue, address(target),
         static_cast<std::int32_t>(bytes));
}

void synchronize(const Queue& queue) {
  LaunchRecording::issue_recorded();
  check(driver().stream_synchronize(queue.stream), "cuStreamSynchronize");
}

void synchronize() {
  ensure_context();
  check(driver().context_synchronize(), "cuCtxSynchronize");
}

void synchronize_quietly() noexcept { driver().context_synchronize(); }

}  // namespace kintsugi::core::cuda
