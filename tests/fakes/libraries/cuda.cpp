// A libcuda.so.1 without a device: every function of base/cuda/cuda_driver.hpp, those of kernels in
// cuda_kernels.cpp. fake_cuda.hpp describes what they do.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "tests/fakes/libraries/cuda_state.hpp"

namespace kintsugi::fake {

namespace {

Result copy(Address target, Address source, std::size_t bytes, Stream stream) {
  if (const Result result = refused(stream); result != 0) return result;
  if (is_foreign(target) || is_foreign(source)) return illegal_address;
  std::memcpy(pointer(target), pointer(source), bytes);
  return 0;
}

// During captures memory is allocated and freed by threads in the relaxed mode alone.
Result refused_unless_relaxed() {
  return capture_mode() == relaxed_capture_mode ? 0 : refused_in_capture(capture_unsupported);
}

}  // namespace

// ---------------------------------------------------------------- driver and devices

Result init(unsigned) { return static_cast<Result>(number("FAKE_CUDA_INIT", 0)); }
Result driver_version(int* version) {
  *version = static_cast<int>(number("FAKE_CUDA_VERSION", 13000));
  return 0;
}
Result device_count(int* count) {
  *count = devices();
  return 0;
}
Result device_get(Device* device, int ordinal) {
  *device = device_number(ordinal);
  return ordinal < devices() ? 0 : invalid_value;
}
Result device_name(char* name, int size, Device device) {
  const std::string text = item("FAKE_CUDA_NAME", "NVIDIA Fake", ordinal_of(device));
  std::strncpy(name, text.c_str(), static_cast<std::size_t>(size));
  return 0;
}
Result device_attribute(int* value, int attribute, Device device) {
  ++state().questions;
  switch (attribute) {
    case compute_capability_major: *value = capability(ordinal_of(device)) / 10; return 0;
    case compute_capability_minor: *value = capability(ordinal_of(device)) % 10; return 0;
    case sm_count_attribute: *value = 132; return 0;
    case 13:
      *value = 1'980'000;
      return 0;  // SM clock in kHz, memory clock in kHz, bus width in bits: an H200's
    case 36: *value = 3'201'000; return 0;
    case 37: *value = 6144; return 0;
    default:
      *value = max_shared_bytes;
      return 0;  // largest shared memory of a thread block, or an identification that no test reads
  }
}
Result error_name(Result result, const char** name) {
  switch (result) {
    case invalid_value: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case error_out_of_memory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case invalid_context: *name = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
    case invalid_handle: *name = "CUDA_ERROR_INVALID_HANDLE"; return 0;
    case not_found: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case illegal_address: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case context_is_destroyed: *name = "CUDA_ERROR_CONTEXT_IS_DESTROYED"; return 0;
    case launch_failed: *name = "CUDA_ERROR_LAUNCH_FAILED"; return 0;
    case capture_unsupported: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return 0;
    case error_capture_implicit: *name = "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"; return 0;
    default: return invalid_value;
  }
}
Result error_string(Result, const char** text) {
  *text = "said by the fake driver";
  return 0;
}

// Refuses what the driver's reference says it refuses: addresses and strides that are no multiples of 16
// bytes, and boxes of more than 256 elements.
Result tensor_map_encode(void*, int, std::uint32_t rank, void* address, const std::uint64_t*,
                         const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t*, int,
                         int, int, int) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return invalid_value;
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (box[i] == 0 || box[i] > 256 || (i + 1 < rank && strides[i] % 16 != 0)) return invalid_value;
  }
  return 0;
}

// The drop-in for cuBLAS calls the next two; the engine does not.
extern "C" __attribute__((visibility("default"))) Result cuEventQuery(Event) {
  note("cuEventQuery");
  return 0;
}
extern "C" __attribute__((visibility("default"))) Result cuDeviceTotalMem_v2(std::size_t* bytes, Device) {
  *bytes = static_cast<std::size_t>(number("FAKE_CUDA_MEMORY", 150'000'000'000));
  return 0;
}

// ---------------------------------------------------------------- contexts

Result primary_context_retain(Context* context, Device device) {
  note("cuDevicePrimaryCtxRetain {}", device);
  *context = reinterpret_cast<Context>(primary_context(ordinal_of(device)));
  return 0;
}
Result context_current(Context* context) {
  *context = reinterpret_cast<Context>(current());
  return 0;
}
Result context_set_current(Context context) {
  if (!stack().empty()) stack().pop_back();
  if (context != nullptr) stack().push_back(reinterpret_cast<FakeContext*>(context));
  return 0;
}
Result context_push(Context context) {
  auto* pushed = reinterpret_cast<FakeContext*>(context);
  if (pushed == nullptr || pushed->destroyed) return invalid_context;
  stack().push_back(pushed);
  return 0;
}
Result context_pop(Context* context) {
  if (stack().empty()) return invalid_context;
  *context = reinterpret_cast<Context>(current());
  stack().pop_back();
  return 0;
}
Result context_id(Context context, unsigned long long* id) {
  const auto* asked = context != nullptr ? reinterpret_cast<FakeContext*>(context) : current();
  if (asked == nullptr) return invalid_context;
  *id = asked->id;
  return asked->destroyed ? context_is_destroyed : 0;
}
Result context_device(Device* device) {
  if (const Result result = refusal(nullptr); result != 0) return result;
  *device = device_number(current()->ordinal);
  return 0;
}
Result context_synchronize() {
  if (const Result result = refusal(nullptr); result != 0) return result;
  note("cuCtxSynchronize device={}", current()->ordinal);
  return refused_in_capture(capture_unsupported);
}

// ---------------------------------------------------------------- memory

Result memory_allocate(Address* result, std::size_t bytes) {
  note("cuMemAlloc {}", bytes);
  if (const Result refused = refusal(nullptr); refused != 0) return refused;
  const Result captured = refused_unless_relaxed();
  return captured != 0 ? captured : allocate(result, bytes);
}
Result memory_free(Address address) {
  note("cuMemFree");
  const Result captured = refused_unless_relaxed();
  return captured != 0 ? captured : release(address);
}
Result memory_allocate_async(Address* result, std::size_t bytes, Stream stream) {
  note("cuMemAllocAsync {} stream={}", bytes, stream);
  const Result result_of_stream = refused_memory_node(stream);
  return result_of_stream != 0 ? result_of_stream : allocate(result, bytes, Owner::pool);
}
Result pool_create(MemoryPool* pool, const MemoryPoolProperties* properties) {
  note("cuMemPoolCreate device={}", properties->location);
  if (number("FAKE_CUDA_NO_POOLS", 0) != 0) return not_supported;
  *pool = token<MemoryPool>();
  return 0;
}
Result pool_set_attribute(MemoryPool pool, int attribute, void* value) {
  if (attribute != pool_release_threshold) return invalid_value;
  const std::lock_guard lock(state().mutex);
  state().kept_bytes[pool] = *static_cast<std::uint64_t*>(value);
  return 0;
}
Result pool_trim(MemoryPool pool, std::size_t bytes) {
  std::uint64_t kept_bytes = 0;
  {
    const std::lock_guard lock(state().mutex);
    kept_bytes = state().kept_bytes[pool];
  }
  // A trim that keeps memory is the library's own, at a time that tests do not choose.
  if (bytes == 0) note("cuMemPoolTrimTo {}, kept {}", bytes, kept_bytes);
  return 0;
}
Result pool_allocate_async(Address* result, std::size_t bytes, MemoryPool, Stream stream) {
  note("cuMemAllocFromPoolAsync {} stream={}", bytes, stream);
  const Result result_of_stream = refused_memory_node(stream);
  return result_of_stream != 0 ? result_of_stream : allocate(result, bytes, Owner::pool);
}
Result memory_free_async(Address address, Stream stream) {
  note("cuMemFreeAsync stream={}", stream);
  const Result result = refused_memory_node(stream);
  return result != 0 ? result : release(address);
}
Result copy_to_device_async(Address target, const void* source, std::size_t bytes, Stream stream) {
  note("cuMemcpyHtoDAsync {} stream={}", bytes, stream);
  return copy(target, reinterpret_cast<Address>(source), bytes, stream);
}
Result copy_to_host_async(void* target, Address source, std::size_t bytes, Stream stream) {
  note("cuMemcpyDtoHAsync {} stream={}", bytes, stream);
  return copy(reinterpret_cast<Address>(target), source, bytes, stream);
}
Result copy_on_device_async(Address target, Address source, std::size_t bytes, Stream stream) {
  note("cuMemcpyDtoDAsync {} stream={}", bytes, stream);
  return copy(target, source, bytes, stream);
}
Result set_bytes_async(Address target, unsigned char value, std::size_t bytes, Stream stream) {
  note("cuMemsetD8Async {} stream={}", bytes, stream);
  if (const Result result = refused(stream); result != 0) return result;
  if (is_foreign(target)) return illegal_address;
  std::memset(pointer(target), value, bytes);
  return 0;
}

Result copy_lines_async(const CopyLines* copied, Stream stream) {
  note("cuMemcpy2DAsync {} x {} stream={}", copied->line_bytes, copied->lines, stream);
  if (std::min(copied->target.pitch, copied->source.pitch) < copied->line_bytes) return invalid_value;
  const auto address_of = [](const CopySide& side) {
    return side.memory_type == memory_of_host ? reinterpret_cast<Address>(side.host) : side.device;
  };
  for (std::size_t line = 0; line < copied->lines; ++line) {
    const Result result =
        copy(address_of(copied->target) + line * copied->target.pitch,
             address_of(copied->source) + line * copied->source.pitch, copied->line_bytes, stream);
    if (result != 0) return result;
  }
  return 0;
}
Result memory_info(std::size_t* free, std::size_t* all) {
  *free = *all = static_cast<std::size_t>(number("FAKE_CUDA_MEMORY", 150'000'000'000));
  return refusal(nullptr);
}
Result host_allocate(void** result, std::size_t bytes, unsigned) {
  note("cuMemHostAlloc {}", bytes);
  if (const Result refused = refusal(nullptr); refused != 0) return refused;
  Address address = 0;
  const Result allocated = allocate(&address, bytes);
  if (allocated != 0) return allocated;
  const std::lock_guard lock(state().mutex);
  state().memory.erase(address);  // memory of the host: every context may use it
  state().pinned[address] = bytes;
  *result = pointer(address);
  return 0;
}
Result host_free(void* memory) {
  const std::lock_guard lock(state().mutex);
  if (state().pinned.erase(reinterpret_cast<Address>(memory)) == 0) return invalid_value;
  std::free(memory);
  return 0;
}
Result pointer_attribute(void* value, int, Address address) {
  const std::lock_guard lock(state().mutex);
  auto next = state().pinned.upper_bound(address);
  if (next == state().pinned.begin()) return invalid_value;
  --next;
  if (address >= next->first + next->second) return invalid_value;
  *static_cast<std::uint32_t*>(value) = memory_of_host;
  return 0;
}

// Memory of a pool belongs to no context. Memory that the fake does not know is the host's.
extern "C" __attribute__((visibility("default"))) Result cuPointerGetAttributes(unsigned count,
                                                                                int* attributes,
                                                                                void** values,
                                                                                Address address) {
  if (number("FAKE_CUDA_INIT", 0) != 0) return not_initialized;
  std::uint32_t memory_type = 0;
  pointer_attribute(&memory_type, pointer_memory_type, address);  // sets it for pinned memory
  const std::lock_guard lock(state().mutex);
  const Allocation* found = allocation_at(address);
  if (found != nullptr) memory_type = memory_of_device;
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case pointer_memory_type: *static_cast<std::uint32_t*>(values[i]) = memory_type; break;
      case pointer_is_managed:
        *static_cast<std::uint32_t*>(values[i]) = found != nullptr && found->owner == Owner::managed ? 1 : 0;
        break;
      case pointer_device:
        *static_cast<int*>(values[i]) = found != nullptr ? found->context->ordinal : -2;
        break;
      case pointer_context:
        *static_cast<void**>(values[i]) =
            found != nullptr && found->owner != Owner::pool ? found->context : nullptr;
        break;
      default: return invalid_value;
    }
  }
  return 0;
}
extern "C" __attribute__((visibility("default"))) Result cuMemAllocManaged(Address* result, std::size_t bytes,
                                                                           unsigned) {
  const Result refused = refusal(nullptr);
  return refused != 0 ? refused : allocate(result, bytes, Owner::managed);
}

// ---------------------------------------------------------------- streams and events

// Without a current context the stream belongs to the first device's primary context.
Result stream_create(Stream* stream, unsigned) {
  *stream = token<Stream>();
  FakeContext* context = current() != nullptr ? current() : primary_context(0);
  const std::lock_guard lock(state().mutex);
  state().streams[*stream] = context;
  return 0;
}
Result stream_id(Stream stream, unsigned long long* id) {
  *id = reinterpret_cast<std::uintptr_t>(stream);  // tokens are never used again
  return refused_in_capture(capture_unsupported);
}
Result stream_destroy(Stream stream) {
  const std::lock_guard lock(state().mutex);
  return state().streams.erase(stream) == 1 ? 0 : invalid_value;
}
Result stream_synchronize(Stream stream) {
  note("cuStreamSynchronize stream={}", stream);
  if (const Result result = refusal(stream); result != 0) return result;
  return refused_in_capture(capture_unsupported);
}
Result stream_context(Stream stream, Context* context) {
  FakeContext* owner = stream != nullptr ? context_of(stream) : current();
  if (stream != nullptr && owner == nullptr) return invalid_handle;
  *context = reinterpret_cast<Context>(owner);
  return *context != nullptr ? 0 : invalid_context;
}
Result stream_contexts(Stream stream, Context* context, GreenContext* green) {
  Context stream_context_handle = nullptr;
  if (const Result result = stream_context(stream, &stream_context_handle); result != 0) return result;
  auto* found = reinterpret_cast<FakeContext*>(stream_context_handle);
  *green = found->primary != nullptr ? reinterpret_cast<GreenContext>(found) : nullptr;
  *context = reinterpret_cast<Context>(const_cast<FakeContext*>(found->regular()));
  return 0;
}
// All streams are blocking ones: the null stream waits for them, so it must not be used during their capture.
Result stream_is_capturing(Stream stream, int* status) {
  return stream_capture_info(stream, status, nullptr, nullptr, nullptr, nullptr);
}
Result stream_capture_info(Stream stream, int* status, unsigned long long* id, Graph* graph,
                           const GraphNode**, std::size_t*) {
  if (stream == nullptr && !state().capturing.empty()) return error_capture_implicit;
  const auto found = state().capturing.find(stream);
  constexpr int invalidated = 2;
  *status = found == state().capturing.end() ? 0 : found->second->end == 0 ? active_capture : invalidated;
  if (*status == 0) return 0;
  if (id != nullptr) *id = found->second->id;
  if (graph != nullptr) *graph = found->second->graph;
  return 0;
}
Result stream_begin_capture(Stream stream, int) {
  if (stream == nullptr) return capture_unsupported;
  state().capturing[stream] =
      std::make_shared<FakeCapture>(FakeCapture{++state().captures, token<Graph>(), stream});
  return 0;
}
// Ends the capture of all streams that have joined it.
Result stream_end_capture(Stream stream, Graph* graph) {
  const auto found = state().capturing.find(stream);
  if (found == state().capturing.end() || found->second->origin != stream) return invalid_value;
  const std::shared_ptr<FakeCapture> capture = found->second;
  std::erase_if(state().capturing, [&](const auto& item) { return item.second == capture; });
  std::erase_if(state().captured_events, [&](const auto& item) { return item.second == capture; });
  *graph = capture->end == 0 ? capture->graph : nullptr;
  if (capture->end != 0) release_objects_of(capture->graph);
  return capture->end;
}
Result event_create(Event* event, unsigned) {
  *event = token<Event>();
  return 0;
}
Result event_record(Event event, Stream stream) {
  note("cuEventRecord stream={}", stream);
  state().recorded_at[event] = state().events.size();
  const auto found = state().capturing.find(stream);
  state().captured_events.erase(event);
  if (found != state().capturing.end()) state().captured_events[event] = found->second;
  return 0;
}
// A stream that waits for an event of a captured stream joins the capture.
Result stream_wait_event(Stream stream, Event event, unsigned) {
  note("cuStreamWaitEvent stream={}", stream);
  if (const Result result = refusal(stream); result != 0) return result;
  const auto found = state().captured_events.find(event);
  if (found != state().captured_events.end()) state().capturing[stream] = found->second;
  return 0;
}
Result event_synchronize(Event) {
  note("cuEventSynchronize");
  return refused_in_capture(capture_unsupported);
}
// A millisecond, and what the tests set for each launch and each product of cuBLAS.
Result event_elapsed(float* milliseconds, Event first, Event second) {
  const std::lock_guard lock(state().mutex);
  const std::size_t begin = state().recorded_at[first], end = state().recorded_at[second];
  std::istringstream between(end <= state().events.size() ? state().events.substr(begin, end - begin) : "");
  long all = 1;
  for (std::string line; std::getline(between, line);) {
    if (line.starts_with("cuLaunchKernel") || line.starts_with("cuGraphLaunch"))
      all += number("FAKE_CUDA_LAUNCH_MILLISECONDS", 0);
    if (line.starts_with("cublas")) all += number("FAKE_CUBLAS_MILLISECONDS", 0);
  }
  *milliseconds = static_cast<float>(all);
  return 0;
}
Result event_destroy(Event) { return 0; }

}  // namespace kintsugi::fake
