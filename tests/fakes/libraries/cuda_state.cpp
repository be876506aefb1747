#include "tests/fakes/libraries/cuda_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tests/fakes/libraries/fake_cuda.hpp"

namespace kintsugi::fake {

State& state() {
  static State instance;
  return instance;
}

long number(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtol(text, nullptr, 10) : otherwise;
}

// Returns the item of a device from a list such as "9.0,8.0"; further devices have the last item.
std::string item(const char* variable, const char* otherwise, int ordinal) {
  const char* text = std::getenv(variable);
  std::string rest = text != nullptr ? text : otherwise;
  for (; ordinal > 0 && rest.find(',') != std::string::npos; --ordinal) rest.erase(0, rest.find(',') + 1);
  return rest.substr(0, rest.find(','));
}

// Returns a device's compute capability, 90 for "9.0".
int capability(int ordinal) {
  const std::string words = item("FAKE_CUDA_CAPABILITY", "9.0", ordinal);
  return 10 * std::stoi(words) + std::stoi(words.substr(words.find('.') + 1));
}

// The engine caches a device's properties by its number, so a device with another capability gets another
// number.
Device device_number(int ordinal) { return capability(ordinal) + ordinal; }

int devices() { return static_cast<int>(number("FAKE_CUDA_DEVICES", 1)); }

int ordinal_of(Device device) {
  for (int ordinal = 0; ordinal < devices(); ++ordinal) {
    if (device_number(ordinal) == device) return ordinal;
  }
  return 0;
}

// Counts a call, and returns true if the variable has its number.
bool must_fail(const char* variable, long& count) {
  const char* text = std::getenv(variable);
  std::istringstream numbers(text != nullptr ? text : "");
  ++count;
  for (std::string each; std::getline(numbers, each, ',');)
    if (std::strtol(each.c_str(), nullptr, 10) == count) return true;
  return false;
}

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

// ---------------------------------------------------------------- contexts and access

// Kept beyond the thread's own objects, since functions that are called at exit still use the driver.
std::vector<FakeContext*>& stack() {
  thread_local std::vector<FakeContext*>* contexts = nullptr;
  if (contexts == nullptr) {
    const std::lock_guard lock(state().mutex);
    contexts = state().stacks.emplace_back(new std::vector<FakeContext*>).get();
  }
  return *contexts;
}
FakeContext* current() { return stack().empty() ? nullptr : stack().back(); }

FakeContext* make_context(int ordinal, FakeContext* primary) {
  const std::lock_guard lock(state().mutex);
  auto& contexts = state().contexts;
  const auto reusable =
      std::find_if(contexts.begin(), contexts.end(), [](const auto& c) { return c->destroyed; });
  FakeContext* context =
      reusable != contexts.end() ? reusable->get() : contexts.emplace_back(new FakeContext).get();
  *context = {ordinal, ++state().context_ids, primary};
  return context;
}

FakeContext* primary_context(int ordinal) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  FakeContext*& context = state().primary_contexts[ordinal];
  if (context == nullptr || context->destroyed) context = make_context(ordinal, nullptr);
  return context;
}

// Returns the context of a stream; nullptr: there is no such stream.
FakeContext* context_of(Stream stream) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().streams.find(stream);
  return found == state().streams.end() ? nullptr : found->second;
}

// Returns the error of a call on the stream by the calling thread, or 0 if it is allowed.
Result refusal(Stream stream) {
  const FakeContext* context = current();
  if (context == nullptr) return invalid_context;
  if (context->destroyed) return context_is_destroyed;
  if (stream == nullptr) return 0;
  const FakeContext* owner = context_of(stream);
  return owner != nullptr && owner->regular() == context->regular() ? 0 : invalid_handle;
}

// Calls that may wait for the device are refused while a stream is captured, and spoil the capture.
Result refused_in_capture(Result result) {
  for (auto& [stream, capture] : state().capturing) capture->end = capture_invalidated;
  return state().capturing.empty() ? 0 : result;
}

// The calling thread's capture mode.
int& capture_mode() {
  static thread_local int mode = 0;
  return mode;
}

// Stream-ordered allocations and frees become memory nodes of the captured graph, which cannot be a child
// graph then. So no capture may have any; the driver itself refuses the graph when it is added to another.
Result refused_memory_node(Stream stream) {
  if (const Result result = refused(stream); result != 0) return result;
  const auto found = state().capturing.find(stream);
  if (found == state().capturing.end()) return 0;
  found->second->end = capture_invalidated;
  return not_supported;
}

Result refused(Stream stream) {
  if (const Result result = refusal(stream); result != 0) return result;
  return stream == nullptr ? refused_in_capture(error_capture_implicit) : 0;
}

// Returns the device memory of that address, or nullptr.
const Allocation* allocation_at(Address address) {
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return nullptr;
  const auto& [begin, allocation] = *--next;
  return address < begin + allocation.bytes ? &allocation : nullptr;
}

// True for memory of another context than the current one. Memory that was not allocated here belongs to the
// test.
bool is_foreign(Address address) {
  const std::lock_guard lock(state().mutex);
  const Allocation* allocation = allocation_at(address);
  if (allocation == nullptr) return false;
  const FakeContext* owner = allocation->context;
  return owner->id != allocation->context_id || owner->regular() != current()->regular();
}

Result allocate(Address* result, std::size_t bytes, Owner owner) {
  const std::lock_guard lock(state().mutex);
  if (must_fail("FAKE_CUDA_FAIL_ALLOCATION", state().allocations)) return error_out_of_memory;
  if (bytes > static_cast<std::size_t>(number("FAKE_CUDA_MOST_BYTES", 1L << 40))) return error_out_of_memory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return error_out_of_memory;
  *result = reinterpret_cast<Address>(memory);
  state().memory[*result] = {bytes, current(), current()->id, owner};
  return 0;
}

Result release(Address address) {
  if (is_foreign(address)) return illegal_address;
  const std::lock_guard lock(state().mutex);
  if (state().memory.erase(address) == 0) return invalid_value;
  std::free(pointer(address));
  return 0;
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
KINTSUGI_FAKE_EXPORT void* fake_cuda_make_context(int device, void* primary) {
  return kintsugi::fake::make_context(device, static_cast<kintsugi::fake::FakeContext*>(primary));
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
