// Kernels that are compiled on the user's machine, by NVRTC, at their first use. Their sources need no header
// but those of run_time_headers(), which are part of the library.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/queue.hpp"
#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

struct RunTimeHeader {
  const char* name;
  const char* text;
};
std::span<const RunTimeHeader> run_time_headers();

// NVRTC, as far as it was found.
struct RunTimeCompiler {
  std::string file;    // name of the library
  std::string reason;  // why it cannot be used; empty if it can
  int version = 0;     // 13000 is 13.0
};
const RunTimeCompiler& run_time_compiler();

// Reason why no kernel can be compiled for the current device; empty if kernels can.
std::string no_compiler_reason();

// A source with one kernel, which is `extern "C"`.
struct RunTimeSource {
  std::string text;
  const char* kernel;
  bool is_for_one_architecture = false;  // as files named after one architecture are
};

struct CompiledCode {
  std::string code;  // machine code (a cubin); empty if the compiler refuses the source
  std::string log;   // the compiler's messages, with what each kernel needs
};

// Compiles a source for a compute capability; 90 is 9.0.
CompiledCode compile_kernel(const RunTimeSource& source, int capability);

// Folder of compiled code, which this user alone may write.
class CodeCache {
 public:
  // Folder below $XDG_CACHE_HOME or ~/.cache; nothing if neither is an absolute path.
  static std::optional<std::filesystem::path> default_folder();

  // Makes the folder if it does not exist. It is not used if somebody else owns it or may write to it.
  explicit CodeCache(const std::filesystem::path& folder);
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;
  ~CodeCache();

  bool is_usable() const { return folder_ >= 0; }
  // Code that was kept under this key, whole; nothing if there is none.
  std::optional<std::string> find(const std::string& key) const;
  // Keeps the code, if possible. Other processes see all of it or nothing.
  void keep(const std::string& key, std::string_view code) const;

 private:
  int folder_ = -1;
};

// Compiles the kernel for the current device, or finds it in the cache, unless that was done before. Fails
// with not_supported if the compiler refuses the source.
void compile_at_once(const RunTimeSource& source);

// Returns the kernel. compile_at_once() should have been called. If not, it is compiled now, but fails with
// not_supported while the queue's stream is captured.
const KernelName& compiled_kernel(const RunTimeSource& source, const Queue& queue);

}  // namespace kintsugi::core::cuda
