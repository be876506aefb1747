// libcuda.so.1 without a device: every function of base/cuda_driver.hpp. What it promises stands in fake_cuda.hpp.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cuda_driver.hpp"
#include "base/format_text.hpp"
#include "tests/fakes/fake_cuda.hpp"
#include "tests/fakes/finish_native.hpp"

// Each function bears the driver's symbol and the driver's type, by the library's own table.
namespace kintsugi::fake {

using namespace core::cuda;

#define KINTSUGI_FAKE(name, symbol, arguments) \
  __attribute__((visibility("default"))) Result name arguments asm(symbol);
KINTSUGI_CUDA_DRIVER(KINTSUGI_FAKE)
KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_FAKE)
#undef KINTSUGI_FAKE

namespace {

constexpr unsigned most_shared_bytes = 227 * 1024;  // of a block, on an H200
constexpr unsigned usual_shared_bytes =
    48 * 1024;  // of one that asks for nothing, its own static memory included

// Numbers of CUresult.
constexpr Result invalid_value = 1;
constexpr Result invalid_context = 201;
constexpr Result invalid_handle = 400;
constexpr Result not_found = 500;
constexpr Result illegal_address = 700;
constexpr Result context_is_destroyed = 709;
constexpr Result launch_failed = 719;
constexpr Result capture_unsupported = 900;
constexpr Result capture_invalidated = 901;

// How a file of nvcc -fatbin begins.
struct FatBinary {
  static constexpr std::uint32_t right_magic = 0xba55ed50;

  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t header_bytes = 0;
  std::uint64_t bytes = 0;  // behind the header
};

// Of one that is destroyed the next that is made has the address.
struct FakeContext {
  int ordinal = 0;  // of its device
  unsigned long long id = 0;
  FakeContext* whole = nullptr;  // of a green context the one that it is a part of
  bool destroyed = false;

  const FakeContext* regular() const { return whole != nullptr ? whole : this; }
};

struct Allocation {
  std::size_t bytes = 0;
  FakeContext* context = nullptr;
  unsigned long long context_id = 0;
};

struct FakeKernel {
  std::string name;
  bool sm90a = false;                          // compiled for that alone
  unsigned static_bytes = 0;                   // of shared memory
  std::map<Device, unsigned> dynamic_bytes{};  // that were asked for
};

struct State {
  std::mutex mutex;
  std::string events;
  std::string shown;
  long allocations = 0;
  long launches = 0;
  std::atomic<int> questions = 0;
  std::map<Address, Allocation> memory;
  std::map<void*, FakeContext*> streams;
  std::map<void*, Result> capturing;  // what the end of the capture will return
  std::vector<std::unique_ptr<FakeContext>> contexts;
  std::map<int, FakeContext*> primary_contexts;
  unsigned long long context_ids = 0;
  std::vector<std::unique_ptr<std::string>> libraries;  // what ptxas said when they were made
  std::vector<std::unique_ptr<FakeKernel>> kernels;
};

State& state() {
  static State instance;
  return instance;
}

template <class... Values>
void note(fmt::format_string<Values...> format, Values&&... values) {
  const std::lock_guard lock(state().mutex);
  state().events += fmt::format(format, std::forward<Values>(values)...) + "\n";
}

long number(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtol(text, nullptr, 10) : otherwise;
}

// A device's own item of a list such as "9.0,8.0"; the last is that of all further ones.
std::string item(const char* variable, const char* otherwise, int ordinal) {
  const char* text = std::getenv(variable);
  std::string rest = text != nullptr ? text : otherwise;
  for (; ordinal > 0 && rest.find(',') != std::string::npos; --ordinal) rest.erase(0, rest.find(',') + 1);
  return rest.substr(0, rest.find(','));
}

// 90 of "9.0".
int capability(int ordinal) {
  const std::string words = item("FAKE_CUDA_CAPABILITY", "9.0", ordinal);
  return 10 * std::stoi(words) + std::stoi(words.substr(words.find('.') + 1));
}

// What is known of a device holds for ever, so that one of another capability is another device.
Device device_number(int ordinal) { return capability(ordinal) + ordinal; }

int devices() { return static_cast<int>(number("FAKE_CUDA_DEVICES", 1)); }

int ordinal_of(Device device) {
  for (int ordinal = 0; ordinal < devices(); ++ordinal) {
    if (device_number(ordinal) == device) return ordinal;
  }
  return 0;
}

bool is_the_one(const char* variable, long& count) { return ++count == number(variable, 0); }

// Whatever handle is asked for; never dereferenced.
template <class Handle>
Handle token() {
  static char tokens[1 << 16];
  static int given = 0;
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<Handle>(tokens + ++given);
}

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

// ---------------------------------------------------------------- who may use what

std::vector<FakeContext*>& stack() {
  thread_local std::vector<FakeContext*> contexts;
  return contexts;
}
FakeContext* current() { return stack().empty() ? nullptr : stack().back(); }

FakeContext* make_context(int ordinal, FakeContext* whole) {
  const std::lock_guard lock(state().mutex);
  auto& contexts = state().contexts;
  const auto old = std::find_if(contexts.begin(), contexts.end(), [](const auto& c) { return c->destroyed; });
  FakeContext* context = old != contexts.end() ? old->get() : contexts.emplace_back(new FakeContext).get();
  *context = {ordinal, ++state().context_ids, whole};
  return context;
}

FakeContext* primary_context(int ordinal) {
  FakeContext*& context = state().primary_contexts[ordinal];
  if (context == nullptr || context->destroyed) context = make_context(ordinal, nullptr);
  return context;
}

// Why the calling thread may not do that on the stream.
Result refusal(Stream stream) {
  const FakeContext* context = current();
  if (context == nullptr) return invalid_context;
  if (context->destroyed) return context_is_destroyed;
  if (stream == nullptr) return 0;
  const auto found = state().streams.find(stream);
  if (found == state().streams.end()) return invalid_handle;
  return found->second->regular() == context->regular() ? 0 : invalid_handle;
}

// What waits for the device, or may, is refused while a stream is captured, and spoils the capture.
Result refused_in_capture(Result result) {
  for (auto& [stream, end] : state().capturing) end = capture_invalidated;
  return state().capturing.empty() ? 0 : result;
}

Result refused(Stream stream) {
  if (const Result result = refusal(stream); result != 0) return result;
  return stream == nullptr ? refused_in_capture(error_capture_implicit) : 0;
}

// Memory of another context than the current one; memory that nobody allocated is a test's own.
bool is_foreign(Address address) {
  const std::lock_guard lock(state().mutex);
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return false;
  const auto& [begin, allocation] = *--next;
  if (address >= begin + allocation.bytes) return false;
  const FakeContext* owner = allocation.context;
  return owner->id != allocation.context_id || owner->regular() != current()->regular();
}

Result allocate(Address* result, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (is_the_one("FAKE_CUDA_FAIL_ALLOCATION", state().allocations)) return error_out_of_memory;
  if (bytes > static_cast<std::size_t>(number("FAKE_CUDA_MOST_BYTES", 1L << 40))) return error_out_of_memory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return error_out_of_memory;
  *result = reinterpret_cast<Address>(memory);
  state().memory[*result] = {bytes, current(), current()->id};
  return 0;
}

Result release(Address address) {
  if (is_foreign(address)) return illegal_address;
  const std::lock_guard lock(state().mutex);
  if (state().memory.erase(address) == 0) return invalid_value;
  std::free(pointer(address));
  return 0;
}

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result copy(Address target, Address source, std::size_t bytes, Stream stream) {
  if (const Result result = refused(stream); result != 0) return result;
  if (is_foreign(target) || is_foreign(source)) return illegal_address;
  std::memcpy(pointer(target), pointer(source), bytes);
  return 0;
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
    case multiprocessor_count: *value = 132; return 0;
    default:
      *value = most_shared_bytes;
      return 0;  // of shared memory, or an identification that nobody looks at
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

// Refuses what the driver's reference says it refuses: addresses that are not of 16 bytes, strides likewise.
Result tensor_map_encode(void*, int, std::uint32_t rank, void* address, const std::uint64_t*,
                         const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t*, int,
                         int, int, int) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return invalid_value;
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (box[i] == 0 || box[i] > 256 || (i + 1 < rank && strides[i] % 16 != 0)) return invalid_value;
  }
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
  const Result captured = refused_in_capture(capture_unsupported);
  return captured != 0 ? captured : allocate(result, bytes);
}
Result memory_free(Address address) {
  note("cuMemFree");
  const Result captured = refused_in_capture(capture_unsupported);
  return captured != 0 ? captured : release(address);
}
Result memory_allocate_async(Address* result, std::size_t bytes, Stream stream) {
  note("cuMemAllocAsync {} stream={}", bytes, stream);
  const Result result_of_stream = refused(stream);
  return result_of_stream != 0 ? result_of_stream : allocate(result, bytes);
}
Result memory_free_async(Address address, Stream stream) {
  note("cuMemFreeAsync stream={}", stream);
  const Result result = refused(stream);
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

// ---------------------------------------------------------------- streams, graphs and events

// Where no context is current the stream is one of the first device's primary context.
Result stream_create(Stream* stream, unsigned) {
  *stream = token<Stream>();
  state().streams[*stream] = current() != nullptr ? current() : primary_context(0);
  return 0;
}
Result stream_destroy(Stream stream) { return state().streams.erase(stream) == 1 ? 0 : invalid_value; }
Result stream_synchronize(Stream stream) {
  note("cuStreamSynchronize stream={}", stream);
  if (const Result result = refusal(stream); result != 0) return result;
  return refused_in_capture(capture_unsupported);
}
Result stream_context(Stream stream, Context* context) {
  if (stream != nullptr && !state().streams.contains(stream)) return invalid_handle;
  *context = reinterpret_cast<Context>(stream != nullptr ? state().streams[stream] : current());
  return *context != nullptr ? 0 : invalid_context;
}
Result stream_contexts(Stream stream, Context* context, GreenContext* green) {
  Context its = nullptr;
  if (const Result result = stream_context(stream, &its); result != 0) return result;
  auto* found = reinterpret_cast<FakeContext*>(its);
  *green = found->whole != nullptr ? reinterpret_cast<GreenContext>(found) : nullptr;
  *context = reinterpret_cast<Context>(const_cast<FakeContext*>(found->regular()));
  return 0;
}
// Streams here are blocking ones, which the null stream waits for.
Result stream_is_capturing(Stream stream, int* status) {
  if (stream == nullptr && !state().capturing.empty()) return error_capture_implicit;
  const auto found = state().capturing.find(stream);
  *status = found == state().capturing.end() ? 0 : found->second == 0 ? 1 : 2;
  return 0;
}
Result stream_begin_capture(Stream stream, int) {
  if (stream == nullptr) return capture_unsupported;
  state().capturing[stream] = 0;
  return 0;
}
Result stream_end_capture(Stream stream, Graph* graph) {
  const auto found = state().capturing.find(stream);
  if (found == state().capturing.end()) return invalid_value;
  const Result result = found->second;
  *graph = result == 0 ? token<Graph>() : nullptr;
  state().capturing.erase(found);
  return result;
}
Result graph_instantiate(GraphExec* exec, Graph, unsigned long long) {
  *exec = token<GraphExec>();
  return 0;
}
Result graph_launch(GraphExec, Stream stream) {
  note("cuGraphLaunch stream={}", stream);
  return 0;
}
Result graph_exec_destroy(GraphExec) { return 0; }
Result graph_destroy(Graph) { return 0; }
Result event_create(Event* event, unsigned) {
  *event = token<Event>();
  return 0;
}
Result event_record(Event, Stream stream) {
  note("cuEventRecord stream={}", stream);
  return 0;
}
Result event_synchronize(Event) {
  note("cuEventSynchronize");
  return refused_in_capture(capture_unsupported);
}
Result event_elapsed(float* milliseconds, Event, Event) {
  *milliseconds = 1;
  return 0;
}
Result event_destroy(Event) { return 0; }

// ---------------------------------------------------------------- kernels

// What ptxas said of the fat binary with these bytes (cmake/compile_device_code).
std::string compiler_log(std::string_view image) {
  for (const auto& file : std::filesystem::directory_iterator(KINTSUGI_DEVICE_CODE_FOLDER)) {
    if (file.path().extension() != ".fatbin" || file.file_size() != image.size()) continue;
    if (whole_file(file.path()) == image) return whole_file(file.path().string() + ".log");
  }
  return {};
}

Result library_load(Library* library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  note("cuLibraryLoadData");
  FatBinary begin;
  std::memcpy(&begin, image, sizeof begin);
  if (begin.magic != FatBinary::right_magic) return invalid_value;
  const std::lock_guard lock(state().mutex);
  state().libraries.push_back(std::make_unique<std::string>(
      compiler_log({static_cast<const char*>(image), begin.header_bytes + begin.bytes})));
  *library = reinterpret_cast<Library>(state().libraries.back().get());
  return 0;
}
// "Used 78 registers, used 1 barriers, 1072 bytes smem", of the entry function that begins there.
unsigned static_shared_bytes(const std::string& log, std::size_t entry) {
  const std::size_t used = log.find(": Used ", entry);
  const std::string line = log.substr(used, log.find('\n', used) - used);
  const std::size_t unit = line.find(" bytes smem");
  if (unit == std::string::npos) return 0;
  return static_cast<unsigned>(std::stoul(line.substr(line.rfind(' ', unit - 1) + 1)));
}

// Names of kernels are not to be read in the machine code, which is compressed.
Result library_kernel(Kernel* kernel, Library library, const char* name) {
  const std::string& log = *reinterpret_cast<std::string*>(library);
  const std::size_t entry = log.find(fmt::format("entry function '{}'", name));
  if (entry == std::string::npos) return not_found;
  const std::lock_guard lock(state().mutex);
  const bool sm90a = log.compare(log.find(" for '", entry), 12, " for 'sm_90a") == 0;
  state().kernels.push_back(std::make_unique<FakeKernel>(name, sm90a, static_shared_bytes(log, entry)));
  *kernel = reinterpret_cast<Kernel>(state().kernels.back().get());
  return 0;
}
// As if it were compiled for the device's own architecture, unless it is said for which.
Result kernel_attribute(int* value, int attribute, Kernel handle, Device device) {
  const FakeKernel& kernel = *reinterpret_cast<FakeKernel*>(handle);
  if (attribute != function_ptx_version) return invalid_value;
  const long own = kernel.sm90a ? 90 : capability(ordinal_of(device));
  *value = static_cast<int>(kernel.sm90a ? own : number("FAKE_CUDA_PTX_VERSION", own));
  return 0;
}
Result kernel_set_attribute(int attribute, int value, Kernel handle, Device device) {
  FakeKernel& kernel = *reinterpret_cast<FakeKernel*>(handle);
  note("cuKernelSetAttribute {} {} {}", kernel.name, attribute, value);
  if (attribute != function_dynamic_shared_bytes) return 0;
  const auto bytes = static_cast<unsigned>(value);
  if (kernel.static_bytes + bytes > most_shared_bytes) return invalid_value;
  const std::lock_guard lock(state().mutex);
  kernel.dynamic_bytes[device] = bytes;
  return 0;
}
bool has_shared_memory(const FakeKernel& kernel, unsigned dynamic_bytes) {
  const std::lock_guard lock(state().mutex);
  const auto asked = kernel.dynamic_bytes.find(device_number(current()->ordinal));
  return asked != kernel.dynamic_bytes.end() ? dynamic_bytes <= asked->second
                                             : kernel.static_bytes + dynamic_bytes <= usual_shared_bytes;
}
// Of all kernels only those that clear and that finish native products do anything.
Result launch_kernel(const LaunchConfig* config, Kernel handle, void** arguments, void**) {
  const FakeKernel& kernel = *reinterpret_cast<FakeKernel*>(handle);
  const auto& [grid, block, shared_bytes, stream, attributes, attribute_count] = *config;
  std::string more;
  for (unsigned i = 0; i < attribute_count; ++i) {
    if (attributes[i].id == LaunchAttribute::overlapping().id) more += " overlaps";
    if (attributes[i].id != LaunchAttribute::cluster(1).id) continue;
    const std::int32_t blocks = attributes[i].value[1];
    if (blocks < 1 || blocks > 16 || grid[0] % static_cast<unsigned>(blocks) != 0) return invalid_value;
    more += fmt::format(" cluster={}", blocks);
  }
  if (const Result result = refused(stream); result != 0) return result;
  if (!has_shared_memory(kernel, shared_bytes)) return invalid_value;
  note("cuLaunchKernel {} {}x{}x{} threads={} shared={} stream={}{}", kernel.name, grid[0], grid[1], grid[2],
       block[0] * block[1] * block[2], shared_bytes, stream, more);
  if (kernel.name == "clear_bytes") {
    if (is_foreign(*static_cast<Address*>(arguments[0]))) return illegal_address;
    std::memset(pointer(*static_cast<Address*>(arguments[0])), 0,
                static_cast<std::size_t>(*static_cast<std::int32_t*>(arguments[1])));
  }
  if (std::getenv("FAKE_CUDA_MULTIPLY") != nullptr) finish_native(kernel.name, grid[1], arguments);
  const std::lock_guard lock(state().mutex);
  return is_the_one("FAKE_CUDA_FAIL_LAUNCH", state().launches) ? launch_failed : 0;
}

}  // namespace kintsugi::fake

#define KINTSUGI_FAKE_EXPORT __attribute__((visibility("default")))

KINTSUGI_FAKE_EXPORT const char* fake_cuda_events() {
  auto& state = kintsugi::fake::state();
  const std::lock_guard lock(state.mutex);
  state.shown = state.events;
  return state.shown.c_str();
}
KINTSUGI_FAKE_EXPORT void fake_cuda_forget() {
  auto& state = kintsugi::fake::state();
  const std::lock_guard lock(state.mutex);
  state.events.clear();
  state.allocations = state.launches = 0;
}
KINTSUGI_FAKE_EXPORT int fake_cuda_questions() { return kintsugi::fake::state().questions; }

KINTSUGI_FAKE_EXPORT int fake_cuda_allocations() {
  auto& state = kintsugi::fake::state();
  const std::lock_guard lock(state.mutex);
  return static_cast<int>(state.memory.size());
}
KINTSUGI_FAKE_EXPORT void* fake_cuda_make_context(int device, void* whole) {
  return kintsugi::fake::make_context(device, static_cast<kintsugi::fake::FakeContext*>(whole));
}
KINTSUGI_FAKE_EXPORT void fake_cuda_destroy_context(void* context) {
  auto* destroyed = static_cast<kintsugi::fake::FakeContext*>(context);
  destroyed->destroyed = true;
  // A context's memory ends with it.
  const std::lock_guard lock(kintsugi::fake::state().mutex);
  std::erase_if(kintsugi::fake::state().memory, [&](const auto& item) {
    const auto& [address, allocation] = item;
    if (allocation.context != destroyed || allocation.context_id != destroyed->id) return false;
    std::free(kintsugi::fake::pointer(address));
    return true;
  });
}
KINTSUGI_FAKE_EXPORT unsigned long long fake_cuda_context() {
  const auto* context = kintsugi::fake::current();
  return context != nullptr ? context->id : 0;
}
KINTSUGI_FAKE_EXPORT int fake_cuda_capturing() { return kintsugi::fake::state().capturing.empty() ? 0 : 1; }
KINTSUGI_FAKE_EXPORT void fake_cuda_note(const char* event) { kintsugi::fake::note("{}", event); }
