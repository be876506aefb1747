// State of the fake driver, and the checks that its functions share.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "base/text/format_text.hpp"

namespace kintsugi::fake {

using namespace core::cuda;

// Each function has the symbol and the type that the library's table of driver functions names.
#define KINTSUGI_FAKE(name, symbol, arguments) \
  __attribute__((visibility("default"))) Result name arguments asm(symbol);
KINTSUGI_CUDA_DRIVER(KINTSUGI_FAKE)
KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_FAKE)
#undef KINTSUGI_FAKE

inline constexpr unsigned max_shared_bytes = 227 * 1024;  // of a thread block, on an H200

// Numbers of CUresult.
inline constexpr Result invalid_value = 1;
inline constexpr Result not_initialized = 3;
inline constexpr Result invalid_context = 201;
inline constexpr Result invalid_handle = 400;
inline constexpr Result not_found = 500;
inline constexpr Result illegal_address = 700;
inline constexpr Result context_is_destroyed = 709;
inline constexpr Result launch_failed = 719;
inline constexpr Result not_supported = 801;
inline constexpr Result capture_unsupported = 900;
inline constexpr Result capture_invalidated = 901;

// A new context is made at the address of a destroyed one, so that tests see stale pointers.
struct FakeContext {
  int ordinal = 0;  // of its device
  unsigned long long id = 0;
  FakeContext* primary = nullptr;  // for a green context: the context that it is a part of
  bool destroyed = false;

  const FakeContext* regular() const { return primary != nullptr ? primary : this; }
};

// Owner of memory, by which the driver answers: memory of a pool belongs to a device and to no context.
enum class Owner { context, pool, managed };

struct Allocation {
  std::size_t bytes = 0;
  FakeContext* context = nullptr;
  unsigned long long context_id = 0;
  Owner owner = Owner::context;
};

struct FakeKernel {
  std::string name;
  bool sm90a = false;                          // compiled for sm_90a only
  unsigned static_bytes = 0;                   // static shared memory
  std::map<Device, unsigned> dynamic_bytes{};  // requested dynamic shared memory
};

struct FakeCapture {
  unsigned long long id = 0;
  Graph graph = nullptr;
  Stream origin = nullptr;
  Result end = 0;  // result that its end will return
};

struct State {
  std::mutex mutex;
  std::string events;
  std::string shown;
  long allocations = 0;
  long launches = 0;
  std::atomic<int> questions = 0;
  std::map<Address, Allocation> memory;
  std::map<Address, std::size_t> pinned;           // bytes of each allocation of pinned host memory
  std::map<MemoryPool, std::uint64_t> kept_bytes;  // release threshold of each pool
  std::map<void*, FakeContext*> streams;
  std::map<void*, std::shared_ptr<FakeCapture>> capturing;        // by streams
  std::map<Event, std::shared_ptr<FakeCapture>> captured_events;  // recorded in a stream in a capture
  std::map<Event, std::size_t> recorded_at;  // lengths of `events` when they were recorded
  unsigned long long captures = 0;
  std::vector<std::unique_ptr<FakeContext>> contexts;
  std::vector<std::unique_ptr<std::vector<FakeContext*>>> stacks;  // of each thread
  std::map<int, FakeContext*> primary_contexts;
  unsigned long long context_ids = 0;
  std::vector<std::unique_ptr<std::string>> libraries;  // the ptxas log of each loaded library
  std::vector<std::unique_ptr<FakeKernel>> kernels;
};

State& state();
long number(const char* variable, long otherwise);
std::string item(const char* variable, const char* otherwise, int ordinal);
int capability(int ordinal);
Device device_number(int ordinal);
int devices();
int ordinal_of(Device device);
bool must_fail(const char* variable, long& count);
void* pointer(Address address);
std::vector<FakeContext*>& stack();
FakeContext* current();
FakeContext* make_context(int ordinal, FakeContext* primary);
FakeContext* primary_context(int ordinal);
FakeContext* context_of(Stream stream);
Result refusal(Stream stream);
Result refused_in_capture(Result result);
Result refused(Stream stream);
Result refused_memory_node(Stream stream);
int& capture_mode();
void release_objects_of(void* graph);
const Allocation* allocation_at(Address address);  // the caller holds the state's mutex
bool is_foreign(Address address);
Result allocate(Address* result, std::size_t bytes, Owner owner = Owner::context);
Result release(Address address);

template <class... Values>
void note(fmt::format_string<Values...> format, Values&&... values) {
  const std::lock_guard lock(state().mutex);
  state().events += fmt::format(format, std::forward<Values>(values)...) + "\n";
}

// Returns a new handle of the given type, which is never dereferenced.
template <class Handle>
Handle token() {
  static char tokens[1 << 16];
  static int given = 0;
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<Handle>(tokens + ++given);
}

}  // namespace kintsugi::fake
