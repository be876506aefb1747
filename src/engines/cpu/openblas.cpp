#include "engines/cpu/openblas.hpp"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "base/floating_environment.hpp"
#include "base/settings.hpp"
#include "base/status.hpp"

namespace kintsugi::core {

namespace {

// The quickest kernel set of this CPU by what it can execute, not by its name; nullptr: OpenBLAS
// may choose.
const char* core_type() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

// OpenBLAS reads OPENBLAS_CORETYPE in its constructor, so it must be set while it is opened. A value
// that is there already is overridden and put back: some systems set it for all programs to a kernel
// that runs at half the CPU's rate.
void* open_pinned(const std::string& name) {
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  const std::string chosen = environment_only_value(SettingId::cpu_blas_kernel);
  const char* kernel = chosen == "auto" ? core_type() : chosen.c_str();
  if (kernel == nullptr) return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* old = std::getenv(variable);
  const std::optional<std::string> before = old == nullptr ? std::nullopt : std::optional<std::string>(old);
  ::setenv(variable, kernel, 1);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (before) {
    ::setenv(variable, before->c_str(), 1);
  } else {
    ::unsetenv(variable);
  }
  return library;
}

template <class Function>
void find(OpenBlas& table, void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  if (function == nullptr && table.reason.empty())
    table.reason = fmt::format("it has no function {}", symbol);
}

std::string describe(void* library, const OpenBlas& table) {
  const auto text = [&](const char* symbol) -> std::string {
    const auto function = reinterpret_cast<char* (*)()>(::dlsym(library, symbol));
    return function != nullptr ? function() : "unknown";
  };
  Dl_info info{};
  const bool found = ::dladdr(reinterpret_cast<void*>(table.sgemm), &info) != 0;
  return fmt::format("{}, kernel {}, from {}", text("openblas_get_config"), text("openblas_get_corename"),
                     found && info.dli_fname != nullptr ? info.dli_fname : "unknown");
}

// Why the opened copy is not the one that was asked for, or cannot be called; empty when it can.
std::string refusal(const OpenBlas& table, const std::string& name) {
  if (!table.reason.empty()) return fmt::format("{} is not an OpenBLAS: {}", name, table.reason);
  if (table.details.find("USE64BITINT") != std::string::npos) {
    return fmt::format("{} takes 64-bit integers, and the calls here have 32-bit ones", name);
  }
  const std::string kernel = environment_only_value(SettingId::cpu_blas_kernel);
  if (kernel != "auto" && table.details.find("kernel " + kernel + ",") == std::string::npos) {
    return fmt::format("KINTSUGI_CPU_BLAS_KERNEL asks for {}, and what runs is {}", kernel, table.details);
  }
  return {};
}

OpenBlas open_table() {
  // The pool threads of a copy that is opened here inherit it; those of a copy that the program has
  // loaded keep what the program gave them, and native products then run in that.
  const FloatingEnvironment environment;
  const auto lock = lock_environment();
  OpenBlas table;
  const std::string name = environment_only_value(SettingId::cpu_blas);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) library = open_pinned(name);
  if (library == nullptr) {
    const char* error = ::dlerror();
    table.reason =
        fmt::format("{}; on Debian: apt-get install libopenblas0, or name another copy in KINTSUGI_CPU_BLAS",
                    error != nullptr ? error : name);
    return table;
  }
  find(table, library, "sgemm_", table.sgemm);
  find(table, library, "dgemm_", table.dgemm);
  find(table, library, "cgemm_", table.cgemm);
  find(table, library, "zgemm_", table.zgemm);
  find(table, library, "openblas_set_num_threads", table.set_num_threads);
  find(table, library, "openblas_get_num_threads", table.get_num_threads);
  if (table.reason.empty()) table.details = describe(library, table);
  table.reason = refusal(table, name);
  return table;
}

std::mutex threads_mutex;
std::condition_variable threads_free;
int threads_users = 0;
int threads_waiting = 0;
int threads_held = 0;
int threads_before = 0;

}  // namespace

const OpenBlas& openblas() {
  static const OpenBlas table = open_table();
  return table;
}

OpenBlasThreads::OpenBlasThreads(int threads) {
  std::unique_lock lock(threads_mutex);
  // Nobody joins the present holders while others wait, so that none waits for ever.
  const bool joins = threads_held == threads && threads_waiting == 0;
  if (threads_users > 0 && !joins) {
    ++threads_waiting;
    threads_free.wait(lock, [] { return threads_users == 0; });
    --threads_waiting;
  }
  if (threads_users++ > 0) return;
  threads_held = threads;
  threads_before = openblas().get_num_threads();
  openblas().set_num_threads(threads);
}

OpenBlasThreads::~OpenBlasThreads() {
  const std::lock_guard lock(threads_mutex);
  if (--threads_users > 0) return;
  openblas().set_num_threads(threads_before);
  threads_free.notify_all();
}

}  // namespace kintsugi::core
