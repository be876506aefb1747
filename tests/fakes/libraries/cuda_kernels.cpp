// Kernels of the fake driver: they are loaded, and launched. Few compute anything.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "engines/cuda/split/split_task.hpp"
#include "tests/fakes/libraries/cuda_state.hpp"
#include "tests/fakes/libraries/native_kernels.hpp"

namespace kintsugi::fake {

namespace {

// Shared memory, static memory included, that a kernel has without a request for more.
constexpr unsigned usual_shared_bytes = 48 * 1024;

// First bytes of a file of nvcc -fatbin.
struct FatBinary {
  static constexpr std::uint32_t right_magic = 0xba55ed50;

  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t header_bytes = 0;
  std::uint64_t bytes = 0;  // after the header
};

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// Returns the ptxas log of the fat binary with these bytes (cmake/compile_device_code).
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
// Reads 1072 of "Used 78 registers, used 1 barriers, 1072 bytes smem", for the entry function whose log
// begins at `entry`.
unsigned static_shared_bytes(const std::string& log, std::size_t entry) {
  const std::size_t used = log.find(": Used ", entry);
  const std::string line = log.substr(used, log.find('\n', used) - used);
  const std::size_t unit = line.find(" bytes smem");
  if (unit == std::string::npos) return 0;
  return static_cast<unsigned>(std::stoul(line.substr(line.rfind(' ', unit - 1) + 1)));
}

// Looks a kernel up in the compiler's log, since the machine code is compressed.
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
// The kernel counts as compiled for the device's own architecture, unless another one is set.
Result kernel_attribute(int* value, int attribute, Kernel handle, Device device) {
  const FakeKernel& kernel = *reinterpret_cast<FakeKernel*>(handle);
  if (attribute != function_ptx_version) return invalid_value;
  const long version = kernel.sm90a ? 90 : capability(ordinal_of(device));
  *value = static_cast<int>(kernel.sm90a ? version : number("FAKE_CUDA_PTX_VERSION", version));
  return 0;
}
Result kernel_set_attribute(int attribute, int value, Kernel handle, Device device) {
  FakeKernel& kernel = *reinterpret_cast<FakeKernel*>(handle);
  note("cuKernelSetAttribute {} {} {}", kernel.name, attribute, value);
  if (attribute != function_dynamic_shared_bytes) return 0;
  const auto bytes = static_cast<unsigned>(value);
  if (kernel.static_bytes + bytes > max_shared_bytes) return invalid_value;
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
// Clears the counters that a split clears.
void clear_counters(const SplitTasks& tasks) {
  if (tasks.cleared.count > 0)
    std::memset(tasks.cleared.first, 0,
                static_cast<std::size_t>(tasks.cleared.count) * sizeof(std::uint32_t));
}
// Records the launch. Only kernels that clear memory, and those that multiply natively, are executed.
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
  if (kernel.name.starts_with("split_") && kernel.name != "split_successively")
    clear_counters(*static_cast<SplitTasks*>(arguments[0]));
  if (std::getenv("FAKE_CUDA_MULTIPLY") != nullptr) multiply_by_kernel(kernel.name, grid[1], arguments);
  const std::lock_guard lock(state().mutex);
  return must_fail("FAKE_CUDA_FAIL_LAUNCH", state().launches) ? launch_failed : 0;
}

}  // namespace kintsugi::fake
