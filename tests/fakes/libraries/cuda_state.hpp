// State of the fake driver and the use of its objects, shared by its functions.
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

// Each function bears the driver's symbol and the driver's type, by the library's own table.
#define KINTSUGI_FAKE(name, symbol, arguments) \
  __attribute__((visibility("default"))) Result name arguments asm(symbol);
KINTSUGI_CUDA_DRIVER(KINTSUGI_FAKE)
KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_FAKE)
#undef KINTSUGI_FAKE

inline constexpr unsigned max_shared_bytes = 227 * 1024;  // of a thread block, on an H200

// Numbers of CUresult.
inline constexpr Result invalid_value = 1;
inline constexpr Result invalid_context = 201;
inline constexpr Result invalid_handle = 400;
inline constexpr Result not_found = 500;
inline constexpr Result illegal_address = 700;
inline constexpr Result context_is_destroyed = 709;
inline constexpr Result launch_failed = 719;
inline constexpr Result capture_unsupported = 900;
inline constexpr Result capture_invalidated = 901;

// The next context that is made has the address of one that was destroyed.
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

State& state();
long number(const char* variable, long otherwise);
std::string item(const char* variable, const char* otherwise, int ordinal);
int capability(int ordinal);
Device device_number(int ordinal);
int devices();
int ordinal_of(Device device);
bool is_the_one(const char* variable, long& count);
void* pointer(Address address);
std::vector<FakeContext*>& stack();
FakeContext* current();
FakeContext* make_context(int ordinal, FakeContext* whole);
FakeContext* primary_context(int ordinal);
Result refusal(Stream stream);
Result refused_in_capture(Result result);
Result refused(Stream stream);
bool is_foreign(Address address);
Result allocate(Address* result, std::size_t bytes);
Result release(Address address);

template <class... Values>
void note(fmt::format_string<Values...> format, Values&&... values) {
  const std::lock_guard lock(state().mutex);
  state().events += fmt::format(format, std::forward<Values>(values)...) + "\n";
}

// Whatever handle is asked for; never dereferenced.
template <class Handle>
Handle token() {
  static char tokens[1 << 16];
  static int given = 0;
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<Handle>(tokens + ++given);
}

}  // namespace kintsugi::fake
