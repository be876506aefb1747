#include "engines/cuda/common/run_time_compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "base/threads.hpp"
#include "base/version.hpp"

namespace kintsugi::core::cuda {

namespace {

// ---------------------------------------------------------------- NVRTC

using NvrtcProgram = struct NvrtcProgramTag*;  // nvrtcProgram

// Functions: name of the member, symbol, arguments.
#define KINTSUGI_NVRTC(FUNCTION)                                                                   \
  FUNCTION(version, "nvrtcVersion", (int*, int*))                                                  \
  FUNCTION(create, "nvrtcCreateProgram",                                                           \
           (NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  FUNCTION(compile, "nvrtcCompileProgram", (NvrtcProgram, int, const char* const*))                \
  FUNCTION(code_size, "nvrtcGetCUBINSize", (NvrtcProgram, std::size_t*))                           \
  FUNCTION(code, "nvrtcGetCUBIN", (NvrtcProgram, char*))                                           \
  FUNCTION(log_size, "nvrtcGetProgramLogSize", (NvrtcProgram, std::size_t*))                       \
  FUNCTION(log, "nvrtcGetProgramLog", (NvrtcProgram, char*))                                       \
  FUNCTION(destroy, "nvrtcDestroyProgram", (NvrtcProgram*))                                        \
  FUNCTION(architecture_count, "nvrtcGetNumSupportedArchs", (int*))                                \
  FUNCTION(architectures, "nvrtcGetSupportedArchs", (int*))

struct Nvrtc {
#define KINTSUGI_NVRTC_MEMBER(name, symbol, arguments) int(*name) arguments = nullptr;
  KINTSUGI_NVRTC(KINTSUGI_NVRTC_MEMBER)
#undef KINTSUGI_NVRTC_MEMBER
  RunTimeCompiler found;
  std::vector<int> supported;  // compute capabilities; 90 is 9.0
};

constexpr std::array nvrtc_names{"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr int nvrtc_success = 0;

// Opens a copy that is loaded already, or else the file that the setting names. The setting's default is the
// first of nvrtc_names and stands for all of them.
void* open_nvrtc_library(std::string& file) {
  for (const char* name : nvrtc_names) {
    file = name;
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  }
  const auto lock = lock_environment();
  const std::string setting = environment_only_value(SettingId::nvrtc);
  std::vector<std::string> names{setting};
  if (setting == nvrtc_names.front()) names.assign(nvrtc_names.begin(), nvrtc_names.end());
  for (const std::string& name : names) {
    file = name;
    if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

// Finds all functions; returns the name of the first that the library lacks, or nullptr.
const char* find_nvrtc_functions(void* library, Nvrtc& nvrtc) {
#define KINTSUGI_NVRTC_FIND(name, symbol, arguments)                         \
  nvrtc.name = reinterpret_cast<int(*) arguments>(::dlsym(library, symbol)); \
  if (nvrtc.name == nullptr) return symbol;
  KINTSUGI_NVRTC(KINTSUGI_NVRTC_FIND)
#undef KINTSUGI_NVRTC_FIND
  return nullptr;
}

Nvrtc open_nvrtc() {
  Nvrtc nvrtc;
  RunTimeCompiler& found = nvrtc.found;
  void* library = open_nvrtc_library(found.file);
  if (library == nullptr) {
    const char* error = ::dlerror();
    found.reason = fmt::format(
        "NVRTC 12 or 13 cannot be opened ({}); it comes with a CUDA toolkit or with the Python package "
        "nvidia-cuda-nvrtc, and KINTSUGI_NVRTC names its file",
        error != nullptr ? error : found.file);
    return nvrtc;
  }
  if (const char* missing = find_nvrtc_functions(library, nvrtc)) {
    found.reason = fmt::format("{} has no function {}", found.file, missing);
    return nvrtc;
  }
  int major = 0;
  int minor = 0;
  int count = 0;
  const bool answers =
      nvrtc.version(&major, &minor) == nvrtc_success && nvrtc.architecture_count(&count) == nvrtc_success;
  nvrtc.supported.resize(answers ? static_cast<std::size_t>(count) : 0);
  if (!answers || nvrtc.architectures(nvrtc.supported.data()) != nvrtc_success)
    found.reason = fmt::format("{} does not say for which GPUs it compiles", found.file);
  found.version = 1000 * major + 10 * minor;
  return nvrtc;
}

const Nvrtc& nvrtc() {
  static constinit MadeOnce library(open_nvrtc);
  return library.get();
}

std::string nvrtc_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int compute_capability() {
  const Device device = device_in_use();
  return 10 * device_attribute(compute_capability_major, device) +
         device_attribute(compute_capability_minor, device);
}

// Headers that the sources include, for a compiler without a standard library.
constexpr const char* cstddef_text =
    "namespace std { using size_t = decltype(sizeof 0); enum class byte : unsigned char {}; }\n";
constexpr const char* cstdint_text =
    "namespace std {\n"
    "using int8_t = signed char; using int16_t = short; using int32_t = int; using int64_t = long;\n"
    "using uint8_t = unsigned char; using uint16_t = unsigned short; using uint32_t = unsigned;\n"
    "using uint64_t = unsigned long; }\n";

// Options beside the architecture: those of the build (cmake/DeviceCode.cmake).
constexpr std::array compile_options{"--std=c++20", "--fmad=false", "--device-as-default-execution-space",
                                     "--ptxas-options=-v"};

// ---------------------------------------------------------------- keys of the cache

// FNV-1a of 128 bits.
class Hash {
  __extension__ using Word = unsigned __int128;

 public:
  void add(std::string_view text) {
    for (const char c : text) {
      word_ = (word_ ^ static_cast<unsigned char>(c)) * prime;
    }
    word_ = (word_ ^ separator) * prime;
  }
  std::string text() const {
    return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(word_ >> 64),
                       static_cast<std::uint64_t>(word_));
  }

 private:
  static constexpr Word prime = (Word{1} << 88) + 0x13b;
  static constexpr Word separator = 0x100;  // no character

  Word word_ = Word{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
};

std::string hash_of(std::string_view text) {
  Hash hash;
  hash.add(text);
  return hash.text();
}

// Hash of all that the code depends on.
std::string key_of(const std::string& source, const std::string& architecture) {
  Hash hash;
  hash.add(library_version);
  hash.add(nvrtc_version_text(nvrtc().found.version));
  hash.add(architecture);
  for (const char* option : compile_options) hash.add(option);
  hash.add(source);
  for (const RunTimeHeader& header : run_time_headers()) {
    hash.add(header.name);
    hash.add(header.text);
  }
  hash.add(cstddef_text);
  hash.add(cstdint_text);
  return hash.text();
}

// A file descriptor that is closed at the end.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool belongs_to_user(int descriptor, mode_t type) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && (status.st_mode & S_IFMT) == type &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<std::string> read_all(int descriptor) {
  std::string text;
  std::array<char, 65536> part{};
  while (true) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

std::string file_of(const std::string& key) { return key + ".cubin"; }

// ---------------------------------------------------------------- loaded kernels

std::string architecture_of(const RunTimeSource& source, int capability) {
  return fmt::format("sm_{}{}", capability, source.is_for_one_architecture ? "a" : "");
}

std::string code_of(const RunTimeSource& source, int capability) {
  const std::optional<std::filesystem::path> folder = CodeCache::default_folder();
  const std::optional<CodeCache> cache =
      folder ? std::optional<CodeCache>(std::in_place, *folder) : std::nullopt;
  const std::string key = key_of(source.text, architecture_of(source, capability));
  if (cache) {
    if (std::optional<std::string> kept = cache->find(key)) return *std::move(kept);
  }
  CompiledCode compiled = compile_kernel(source, capability);
  if (compiled.code.empty())
    fail(Status::not_supported, "{} does not compile a kernel for {}: {}", nvrtc().found.file,
         architecture_of(source, capability), compiled.log);
  if (cache) cache->keep(key, compiled.code);
  return std::move(compiled.code);
}

Kernel load_kernel(const std::string& code, const char* name) {
  const RelaxedCaptureMode relaxed;  // other threads may capture
  Library library = nullptr;
  check(driver().library_load(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), name);
  Kernel kernel = nullptr;
  check(driver().library_kernel(&kernel, library, name), name);
  return kernel;
}

// All kernels that were compiled, for every architecture of the machine. None is ever unloaded.
class CompiledKernels {
 public:
  // Returns the kernel, which is compiled if need be. Then `check` is called before.
  template <class Check>
  const KernelName& compile(const RunTimeSource& source, const Check& check) {
    const int capability = compute_capability();
    const auto lock = lock_shared_state();
    const auto found = kernels_.find({capability, source.text});
    if (found != kernels_.end()) return found->second;
    check();
    const Kernel kernel = load_kernel(code_of(source, capability), source.kernel);
    return kernels_
        .emplace(std::piecewise_construct, std::forward_as_tuple(capability, source.text),
                 std::forward_as_tuple(source.kernel, kernel))
        .first->second;
  }

 private:
  std::map<std::pair<int, std::string>, KernelName> kernels_;
};

CompiledKernels& compiled_kernels() {
  static auto* all = new CompiledKernels;  // calls may still be running when the program ends
  return *all;
}

}  // namespace

const RunTimeCompiler& run_time_compiler() { return nvrtc().found; }

// An older driver need not take the code of a later CUDA's compiler.
std::string no_compiler_reason() {
  const Nvrtc& library = nvrtc();
  const RunTimeCompiler& found = library.found;
  if (!found.reason.empty()) return found.reason;
  if (found.version / 1000 > driver().version / 1000)
    return fmt::format("{} is of CUDA {}, and the driver for CUDA {}", found.file,
                       nvrtc_version_text(found.version), driver().version_text());
  const int capability = compute_capability();
  for (const int supported : library.supported) {
    if (supported == capability) return {};
  }
  return fmt::format("{} of CUDA {} does not compile for compute capability {}.{}", found.file,
                     nvrtc_version_text(found.version), capability / 10, capability % 10);
}

CompiledCode compile_kernel(const RunTimeSource& source, int capability) {
  const Nvrtc& library = nvrtc();
  std::vector<const char*> names{"cstddef", "cstdint"};
  std::vector<const char*> texts{cstddef_text, cstdint_text};
  for (const RunTimeHeader& header : run_time_headers()) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  const std::string for_architecture = "--gpu-architecture=" + architecture_of(source, capability);
  std::vector<const char*> all_options(compile_options.begin(), compile_options.end());
  all_options.push_back(for_architecture.c_str());
  NvrtcProgram program = nullptr;
  if (library.create(&program, source.text.c_str(), "kintsugi.cu", static_cast<int>(names.size()),
                     texts.data(), names.data()) != nvrtc_success)
    fail(Status::not_supported, "{} makes no program", library.found.file);
  CompiledCode result;
  const bool compiles =
      library.compile(program, static_cast<int>(all_options.size()), all_options.data()) == nvrtc_success;
  std::size_t size = 0;
  if (library.log_size(program, &size) == nvrtc_success && size > 1) {
    result.log.resize(size);
    if (library.log(program, result.log.data()) != nvrtc_success) result.log.clear();
  }
  if (compiles && library.code_size(program, &size) == nvrtc_success) {
    result.code.resize(size);
    if (library.code(program, result.code.data()) != nvrtc_success) result.code.clear();
  }
  library.destroy(&program);
  return result;
}

std::optional<std::filesystem::path> CodeCache::default_folder() {
  const auto lock = lock_environment();
  for (const auto& [variable, folder] :
       {std::pair("XDG_CACHE_HOME", "kintsugi"), std::pair("HOME", ".cache/kintsugi")}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value == '/') return std::filesystem::path(value) / folder;
  }
  return std::nullopt;
}

CodeCache::CodeCache(const std::filesystem::path& folder) {
  ::mkdir(folder.parent_path().c_str(), S_IRWXU);
  ::mkdir(folder.c_str(), S_IRWXU);
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder_ < 0 || belongs_to_user(folder_, S_IFDIR)) return;
  ::close(folder_);
  folder_ = -1;
}

CodeCache::~CodeCache() {
  if (folder_ >= 0) ::close(folder_);
}

// A file has the code's hash, then the code: a file system may lose the end of a file.
std::optional<std::string> CodeCache::find(const std::string& key) const {
  if (!is_usable()) return std::nullopt;
  const File file(::openat(folder_, file_of(key).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0 || !belongs_to_user(file.get(), S_IFREG)) return std::nullopt;
  const std::optional<std::string> text = read_all(file.get());
  const std::size_t hash_size = hash_of({}).size();
  if (!text || text->size() <= hash_size) return std::nullopt;
  std::string code = text->substr(hash_size);
  if (text->compare(0, hash_size, hash_of(code)) != 0) return std::nullopt;
  return code;
}

void CodeCache::keep(const std::string& key, std::string_view code) const {
  if (!is_usable()) return;
  static std::atomic<int> next = 0;
  // Names of processes of several machines, which may share the folder, can only be equal by chance; then
  // O_EXCL lets one of them write.
  const std::string temporary = fmt::format("{}.{}.{}.new", key, ::getpid(), next++);
  bool is_whole = false;
  {
    const File file(
        ::openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.get() < 0) return;
    is_whole =
        write_all(file.get(), hash_of(code)) && write_all(file.get(), code) && ::fsync(file.get()) == 0;
  }
  if (!is_whole || ::renameat(folder_, temporary.c_str(), folder_, file_of(key).c_str()) != 0)
    ::unlinkat(folder_, temporary.c_str(), 0);
}

void compile_at_once(const RunTimeSource& source) {
  compiled_kernels().compile(source, [] {});
}

const KernelName& compiled_kernel(const RunTimeSource& source, const Queue& queue) {
  return compiled_kernels().compile(source, [&] {
    if (may_be_captured(queue.stream))
      fail(Status::not_supported,
           "a kernel of this product must be compiled, which a stream capture does not allow: call the "
           "product once before");
  });
}

}  // namespace kintsugi::core::cuda
