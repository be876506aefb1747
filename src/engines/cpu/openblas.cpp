#include "engines/cpu/openblas.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/threads.hpp"

namespace kintsugi::core {

namespace {

// Returns the fastest kernel set for this CPU's instructions; the CPU's name does not matter. nullptr:
// OpenBLAS chooses.
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

// Bytes that OpenBLAS maps for a call or a thread on x86-64: a buffer of 128 MiB and what it adds.
constexpr std::size_t buffer_bytes = std::size_t{136} << 20;

// True if there is room for so many threads of OpenBLAS more.
bool can_add_threads(int threads) {
  constexpr std::size_t stack_bytes = std::size_t{8} << 20;
  return has_address_space(static_cast<std::size_t>(threads) * (buffer_bytes + stack_bytes));
}

// Has a variable of the environment for its lifetime, then its earlier value or none.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(value != nullptr ? name : nullptr) {
    if (name_ == nullptr) return;
    if (const char* const old = std::getenv(name)) before_ = old;
    ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (name_ == nullptr) return;
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Opens OpenBLAS while the variable OPENBLAS_CORETYPE names the kernel. OpenBLAS's constructor reads this
// variable. The variable may be set already: some systems set it, for all programs, to a kernel that runs at
// half the CPU's rate. So an earlier value is overridden, and restored afterwards. Without room for a thread
// for each core it has one, since its constructor starts them.
void* open_pinned(const std::string& name) {
  const std::string chosen = environment_only_value(SettingId::cpu_blas_kernel);
  const Variable kernel("OPENBLAS_CORETYPE", chosen == "auto" ? core_type() : chosen.c_str());
  const bool has_room = can_add_threads(static_cast<int>(std::thread::hardware_concurrency()));
  const Variable threads("OPENBLAS_NUM_THREADS", has_room ? nullptr : "1");
  return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// Returns a function's address. The package scipy-openblas32 prefixes all names with "scipy_".
void* address_of(void* library, const std::string& symbol) {
  void* plain = ::dlsym(library, symbol.c_str());
  return plain != nullptr ? plain : ::dlsym(library, ("scipy_" + symbol).c_str());
}

// Sets one function of the table. table.reason names the first function that is missing.
template <class Function>
void set_function(OpenBlas& table, void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(address_of(library, symbol));
  if (function == nullptr && table.reason.empty())
    table.reason = fmt::format("it has no function {}", symbol);
}

std::string describe(void* library, const OpenBlas& table) {
  const auto text = [&](const char* symbol) -> std::string {
    const auto function = reinterpret_cast<char* (*)()>(address_of(library, symbol));
    return function != nullptr ? function() : "unknown";
  };
  Dl_info info{};
  const bool found = ::dladdr(reinterpret_cast<void*>(table.sgemm), &info) != 0;
  return fmt::format("{}, kernel {}, from {}", text("openblas_get_config"), text("openblas_get_corename"),
                     found && info.dli_fname != nullptr ? info.dli_fname : "unknown");
}

// Returns the reason why the opened copy cannot be called, or is not the one that the environment names;
// empty if it can be used.
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

// Opens the library. If a copy is already loaded, that copy is used.
void* open(const std::string& name) {
  void* loaded = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return loaded != nullptr ? loaded : open_pinned(name);
}

// Returns a message with the error of dlopen(), which must have failed just before.
std::string missing_reason(const std::string& name) {
  const char* error = ::dlerror();
  const std::string message = error != nullptr ? error : name;
  if (is_in_environment(SettingId::cpu_blas)) {
    return fmt::format(
        "KINTSUGI_CPU_BLAS = \"{}\" cannot be opened ({}); accepted: the name or path of an OpenBLAS of "
        "32-bit integers, or no such variable",
        name, message);
  }
  return fmt::format(
      "there is no OpenBLAS ({}), without which products on the CPU are many times slower; on Debian: "
      "apt-get install libopenblas0, for Python: pip install scipy-openblas32, or name a copy in "
      "KINTSUGI_CPU_BLAS",
      message);
}

// Returns the path of scipy-openblas32's library, if pip has installed that package beside the package
// kintsugi. Empty if the folder of this library is not known.
std::string neighbouring_package() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&openblas), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::filesystem::path file(info.dli_fname);
  if (!file.is_absolute()) return {};
  return (file.parent_path() / "../scipy_openblas32/lib/libscipy_openblas.so").string();
}

// State of the OpenBlasThreads objects, which hold OpenBLAS at a number of threads.
struct ThreadHolders {
  std::mutex mutex;
  std::condition_variable released;
  int users = 0;    // objects that hold the number `held`
  int waiting = 0;  // objects, or forks, that wait until it is released
  int held = 0;     // number of threads, while there are users
  int before = 0;   // number of threads that the program had set
  int callers = 0;  // threads of the users that may call OpenBLAS
  // True in a child if its parent had users at the fork. The child has no such users, so OpenBLAS still has
  // their number of threads, and `before` must be restored.
  bool abandoned = false;
};
ThreadHolders holders;

// Waits until no call uses several threads. OpenBLAS ends its threads before a fork, and would wait forever
// for a busy thread.
void prepare_fork() {
  std::unique_lock lock(holders.mutex);
  ++holders.waiting;
  holders.released.wait(lock, [] { return holders.users == 0 || holders.held == 1; });
  --holders.waiting;
  lock.release();  // stays locked until the fork is done
}

// Constructs the state anew and does not destroy the old one: the destructor of a condition variable would
// wait for the parent's threads that wait on it.
void begin_in_child() {
  const bool abandoned = holders.users > 0 || holders.abandoned;
  const int before = holders.before;
  new (&holders) ThreadHolders;
  holders.abandoned = abandoned;
  holders.before = before;
}

// Threads of this process. Empty if the system does not tell.
std::set<std::string> process_threads() {
  std::error_code failed;
  std::set<std::string> threads;
  for (std::filesystem::directory_iterator entry("/proc/self/task", failed), end; !failed && entry != end;
       entry.increment(failed))
    threads.insert(entry->path().filename());
  return threads;
}

// Waits until threads that are not in `earlier` have gone to sleep, a tenth of a second at most. Threads of
// OpenBLAS's pool first take a buffer that is free, and would take the one of take_buffer().
void await_new_threads(const std::set<std::string>& earlier) {
  const auto is_running = [&](const std::string& thread) {
    if (earlier.contains(thread)) return false;
    std::ifstream file("/proc/self/task/" + thread + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");
    return name_end != std::string::npos && line[name_end + 2] == 'R';
  };
  for (int attempt = 0; attempt < 100 && std::ranges::any_of(process_threads(), is_running); ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Multiplies matrices that are large enough for OpenBLAS to map its first buffer, which it keeps. It does so
// on one thread: a fork in another thread stops the pool, and a product that waits for it would never end.
void take_buffer(const OpenBlas& blas) {
  const int before = blas.get_num_threads();
  blas.set_num_threads(1);
  constexpr int n = 128;
  constexpr double zero = 0, one = 1;
  const std::vector<double> a(n * n);
  std::vector<double> c(n * n);
  blas.dgemm("N", "N", &n, &n, &n, &one, a.data(), &n, a.data(), &n, &zero, c.data(), &n);
  blas.set_num_threads(before);
}

OpenBlas open_table() {
  // Pool threads of a copy of OpenBLAS that is opened here inherit this environment. Pool threads of a copy
  // that the program has loaded keep the program's environment, and native products run in it.
  const FloatingEnvironment environment;
  const auto lock = lock_environment();
  OpenBlas table;
  table.named = is_in_environment(SettingId::cpu_blas) || is_in_environment(SettingId::cpu_blas_kernel);
  std::string name = environment_only_value(SettingId::cpu_blas);
  constexpr std::size_t library_bytes = std::size_t{64} << 20;
  if (!has_address_space(buffer_bytes + library_bytes)) {
    table.reason =
        "RLIMIT_AS leaves no room for OpenBLAS and its buffers, without which products on the CPU "
        "are many times slower";
    return table;
  }
  std::set<std::string> earlier = process_threads();
  earlier.insert(std::to_string(::gettid()));
  void* library = open(name);
  if (library == nullptr) table.reason = missing_reason(name);
  if (library == nullptr && !is_in_environment(SettingId::cpu_blas)) {
    name = neighbouring_package();
    if (!name.empty()) library = open(name);
  }
  if (library == nullptr) return table;
  table.reason.clear();
  set_function(table, library, "sgemm_", table.sgemm);
  set_function(table, library, "dgemm_", table.dgemm);
  set_function(table, library, "cgemm_", table.cgemm);
  set_function(table, library, "zgemm_", table.zgemm);
  set_function(table, library, "openblas_set_num_threads", table.set_num_threads);
  set_function(table, library, "openblas_get_num_threads", table.get_num_threads);
  if (table.reason.empty()) table.details = describe(library, table);
  table.reason = refusal(table, name);
  // This handler is registered after OpenBLAS's own handlers, so it runs before them in a fork.
  if (table.reason.empty()) {
    await_new_threads(earlier);
    take_buffer(table);
  }
  if (table.reason.empty())
    ::pthread_atfork(
        prepare_fork, [] { holders.mutex.unlock(); }, begin_in_child);
  return table;
}

}  // namespace

const OpenBlas& openblas() {
  static constinit MadeOnce table(open_table);
  return table.get();
}

OpenBlasThreads::OpenBlasThreads(int wanted, int callers) : callers_(callers) {
  const OpenBlas& blas = openblas();
  // More threads than cores gain nothing, and one that OpenBLAS starts later takes its caller's buffer. Their
  // number is read once: each reading opens a file of /sys, which takes longer than a small product.
  static const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  int threads = std::min(usable_threads(wanted), cores);
  // Threads of the pool may have no buffers yet.
  if (threads > 1 && !has_address_space(static_cast<std::size_t>(threads - 1) * buffer_bytes)) threads = 1;
  std::unique_lock lock(holders.mutex);
  const auto fit = [&] {
    const int more = holders.callers + callers_ - 1;
    return more == 0 || has_address_space(static_cast<std::size_t>(more) * buffer_bytes);
  };
  // A call does not join the present holders while other calls wait: with more and more joining calls those
  // would wait forever.
  const bool joins = holders.held == threads && holders.waiting == 0 && fit();
  if (holders.users > 0 && !joins) {
    ++holders.waiting;
    holders.released.wait(lock, [] { return holders.users == 0; });
    --holders.waiting;
  }
  if (holders.users == 0 && !fit()) callers_ = 1;
  holders.callers += callers_;
  if (holders.users++ > 0) return;
  holders.held = threads;
  const int present = blas.get_num_threads();
  if (!std::exchange(holders.abandoned, false)) holders.before = present;
  if (threads < present || (threads > present && can_add_threads(threads - present)))
    blas.set_num_threads(threads);
}

OpenBlasThreads::~OpenBlasThreads() {
  const std::lock_guard lock(holders.mutex);
  holders.callers -= callers_;
  if (--holders.users > 0) return;
  if (holders.before != holders.held) openblas().set_num_threads(holders.before);
  holders.released.notify_all();
}

}  // namespace kintsugi::core
