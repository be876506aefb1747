#include "base/cuda/pointer_location.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>

#include "base/threads/fork.hpp"

namespace kintsugi::core::cuda {

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
