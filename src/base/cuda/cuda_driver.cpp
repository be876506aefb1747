#include "base/cuda/cuda_driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "base/status.hpp"
#include "base/threads.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr std::string_view fork_advice =
    "CUDA cannot be used after a fork: start new processes instead (Python's multiprocessing: start method "
    "\"spawn\"), or multiply on the CPU";

// Finds all functions; returns the name of the first that the library lacks, or nullptr.
const char* find_functions(void* library, Driver& driver) {
#define KINTSUGI_CUDA_FIND(name, symbol, arguments)                              \
  driver.name = reinterpret_cast<Result(*) arguments>(::dlsym(library, symbol)); \
  if (driver.name == nullptr) return symbol;
  KINTSUGI_CUDA_DRIVER(KINTSUGI_CUDA_FIND)
#undef KINTSUGI_CUDA_FIND
#define KINTSUGI_CUDA_FIND_LATER(name, symbol, arguments) \
  driver.name = reinterpret_cast<Result(*) arguments>(::dlsym(library, symbol));
  KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_CUDA_FIND_LATER)
#undef KINTSUGI_CUDA_FIND_LATER
  return nullptr;
}

std::string text_of_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Opens the driver. Returns the reason if no device can be used, else "". The version is checked first,
// because an old driver lacks some functions.
std::string open_driver(Driver& driver) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = ::dlerror();
    return fmt::format("there is no NVIDIA driver ({})", error != nullptr ? error : "libcuda.so.1");
  }
  const auto version = reinterpret_cast<Result (*)(int*)>(::dlsym(library, "cuDriverGetVersion"));
  if (version != nullptr) version(&driver.version);
  if (driver.version < min_driver_version) {
    return fmt::format("the NVIDIA driver is made for CUDA {}; {} or newer is needed", driver.version_text(),
                       text_of_version(min_driver_version));
  }
  if (const char* missing = find_functions(library, driver)) {
    return fmt::format("the NVIDIA driver, made for CUDA {}, has no function {}", driver.version_text(),
                       missing);
  }
  driver.complete = true;
  if (const Result result = driver.init(0); result != 0) {
    return fmt::format("the NVIDIA driver finds no device to use: {}{}", driver.text_of(result),
                       fork_depth() > 0 ? "; " + std::string(fork_advice) : "");
  }
  if (const Result result = driver.device_count(&driver.devices); result != 0)
    return fmt::format("the NVIDIA driver does not count its devices: {}", driver.text_of(result));
  return driver.devices > 0 ? "" : "the NVIDIA driver counts no device";
}

Driver opened_driver() {
  Driver opened;
  opened.reason = open_driver(opened);
  opened.fork_depth = fork_depth();
  return opened;
}

template <class... Arguments>
Result refuse(Arguments...) {
  constexpr Result not_initialized = 3;
  return not_initialized;
}

// Table for a child of the process that opened the driver. No function of the driver may be called in the
// child.
Driver lost_driver() {
  Driver lost;
#define KINTSUGI_CUDA_REFUSE(name, symbol, arguments) lost.name = refuse;
  KINTSUGI_CUDA_DRIVER(KINTSUGI_CUDA_REFUSE)
#undef KINTSUGI_CUDA_REFUSE
  lost.reason = fmt::format("this process was forked by one that uses CUDA; {}", fork_advice);
  return lost;
}

}  // namespace

bool Driver::has_later_functions() const {
  bool has_all = true;
#define KINTSUGI_CUDA_HAS(name, symbol, arguments) has_all = has_all && name != nullptr;
  KINTSUGI_CUDA_LATER_DRIVER(KINTSUGI_CUDA_HAS)
#undef KINTSUGI_CUDA_HAS
  return has_all;
}

std::string Driver::version_text() const { return text_of_version(version); }

std::string Driver::text_of(Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name == nullptr || error_name(result, &name) != 0 || name == nullptr)
    return fmt::format("error {}", result);
  if (error_string == nullptr || error_string(result, &text) != 0 || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

const Driver& driver() {
  static constinit MadeOnce opened(opened_driver);
  static constinit MadeOnce lost(lost_driver);
  const Driver& instance = opened.get();
  const bool is_lost = instance.reason.empty() && instance.fork_depth != fork_depth();
  return is_lost ? lost.get() : instance;
}

void check(Result result, const char* what) {
  if (result == 0) return;
  if (!driver().reason.empty())
    fail(Status::engine_unavailable, "engine cuda cannot run here: {}", driver().reason);
  fail(result == error_out_of_memory ? Status::out_of_memory : Status::device_error, "{}: {}", what,
       driver().text_of(result));
}

Context ensure_context() {
  Context context = nullptr;
  check(driver().context_current(&context), "cuCtxGetCurrent");
  if (context != nullptr) return context;
  check(driver().primary_context_retain(&context, device_at(0)), "cuDevicePrimaryCtxRetain");
  check(driver().context_set_current(context), "cuCtxSetCurrent");
  return context;
}

namespace {

constexpr Device unknown_device = -1;
constinit thread_local Device known_device = unknown_device;

}  // namespace

KnownDevice::KnownDevice() : before_(std::exchange(known_device, unknown_device)) {
  known_device = current_device();
}
KnownDevice::~KnownDevice() { known_device = before_; }

Device current_device() {
  if (known_device != unknown_device) return known_device;
  Device device = 0;
  check(driver().context_device(&device), "cuCtxGetDevice");
  return device;
}

std::uint64_t current_context_id() {
  unsigned long long id = 0;
  check(driver().context_id(nullptr, &id), "cuCtxGetId");
  return id;
}

Device device_at(int index) {
  Device device = 0;
  check(driver().device_get(&device, index), "cuDeviceGet");
  return device;
}

int number_of(Device device) {
  for (int index = 0; index < driver().devices; ++index) {
    if (device_at(index) == device) return index;
  }
  fail(Status::internal, "the driver does not count its device {}", device);
}

Device device_in_use() {
  if (known_device != unknown_device) return known_device;
  Device device = 0;
  return driver().context_device(&device) == 0 ? device : device_at(0);
}

bool may_be_captured(Stream stream) {
  int status = 0;
  const Result result = driver().stream_is_capturing(stream, &status);
  if (result == error_capture_implicit) return true;
  check(result, "cuStreamIsCapturing");
  return status != 0;
}

int device_attribute(int attribute, Device device) {
  constexpr int max_attributes = 128;                                                    // above all numbers
  static std::array<std::array<std::atomic<int>, max_attributes>, max_devices> known{};  // value + 1, or 0
  if (device >= max_devices || attribute >= max_attributes)
    fail(Status::internal, "attribute {} of device {} is beyond {}", attribute, device, max_devices);
  std::atomic<int>& element = known[device][attribute];
  if (element == 0) {
    int value = 0;
    check(driver().device_attribute(&value, attribute, device), "cuDeviceGetAttribute");
    element = value + 1;
  }
  return element - 1;
}

bool DeviceBuild::runs_on(int major, int minor) const {
  const int capability = 10 * major + minor;
  if (architectures.empty()) return false;
  return architectures.front() <= capability ||
         std::any_of(architectures.begin(), architectures.end(), [&](int architecture) {
           return architecture / 10 == major && architecture <= capability;
         });
}

bool has_image(KernelImages images, std::string_view name) {
  return std::any_of(images.begin(), images.end(),
                     [&](const KernelImage& image) { return name == image.name; });
}

Library loaded_image(KernelImages images, std::string_view name) {
  const auto image =
      std::find_if(images.begin(), images.end(), [&](const KernelImage& i) { return name == i.name; });
  if (image == images.end()) fail(Status::internal, "there is no device code \"{}\"", name);
  const auto lock = lock_shared_state();
  static std::map<const void*, Library> loaded;
  Library& library = loaded[image->data];
  if (library == nullptr)
    check(driver().library_load(&library, image->data, nullptr, nullptr, 0, nullptr, nullptr, 0),
          image->name);
  return library;
}

namespace {

using GetAttributes = Result(unsigned, int*, void**, Address);

// cuPointerGetAttributes of the loaded driver; nullptr before the driver was found.
std::atomic<GetAttributes*> get_attributes = nullptr;
int depth_of_driver = 0;  // fork_depth() of the process that found the driver

// Number of libraries that the program has loaded until now, without those at its start. One that is closed
// still counts, so the number changes with every library that is loaded.
unsigned long long loaded_libraries() {
  unsigned long long count = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;  // ends the iteration: every library has the same number
      },
      &count);
  return count;
}

// Looks for the driver among the loaded libraries, and keeps it loaded if it is there.
bool find_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  auto* const found = reinterpret_cast<GetAttributes*>(::dlsym(library, "cuPointerGetAttributes"));
  if (found == nullptr) return false;
  const auto lock = lock_shared_state();
  if (get_attributes == nullptr) depth_of_driver = fork_depth();
  get_attributes.store(found, std::memory_order_release);
  return true;
}

}  // namespace

// A search takes 20 us, since dlopen() looks for the file of a library that is not loaded. So the driver is
// searched only after another library was loaded.
bool is_driver_loaded() {
  static std::atomic<unsigned long long> searched = ~0ULL;
  if (get_attributes.load(std::memory_order_acquire) != nullptr) return depth_of_driver == fork_depth();
  const unsigned long long libraries = loaded_libraries();
  if (searched.load(std::memory_order_relaxed) == libraries) return false;
  if (find_driver()) return true;
  searched.store(libraries, std::memory_order_relaxed);
  return false;
}

// The function succeeds for pointers that the driver does not know, too, and then writes zeros. It fails if
// the program has loaded the driver and not initialized it: there is no device memory then.
PointerLocation location_of(const void* pointer) {
  int attributes[] = {pointer_memory_type, pointer_is_managed, pointer_device, pointer_context};
  std::uint32_t memory_type = 0;
  std::uint32_t managed = 0;
  int device = 0;
  Context context = nullptr;
  void* values[] = {&memory_type, &managed, &device, &context};
  const Result result = get_attributes.load(std::memory_order_relaxed)(4, attributes, values,
                                                                       reinterpret_cast<Address>(pointer));
  const bool on_device = result == 0 && (memory_type == memory_of_device || managed != 0);
  if (!on_device) return {};
  return {.on_device = true, .managed = managed != 0, .device = device, .context = context};
}

}  // namespace kintsugi::core::cuda
