// Not a test: compares two builds of the library on the device: bits of C, times of calls, and the time that
// the calling thread spends in each. build/tests/build_rate [BEFORE.so AFTER.so [--json FILE]] Without
// arguments the library beside the program is measured twice. Plans, workspaces and a stream are given. Each
// round times 8 or 40 calls of one build, then of the other, in changing order; times are medians of 16
// rounds. `idle_us` is the calling thread's time for a call while the device does nothing.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "include/kintsugi/kintsugi.h"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

struct Build {
  explicit Build(const std::string& file) : library(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library == nullptr) throw std::runtime_error(dlerror());
    find(plan_create, "kintsugi_plan_create");
    find(plan_destroy, "kintsugi_plan_destroy");
    find(plan_workspace_size, "kintsugi_plan_workspace_size");
    find(plan_execute, "kintsugi_plan_execute");
    find(last_error, "kintsugi_last_error");
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(fmt::format("a build has no function {}", name));
  }
  void demand(kintsugi_status status) const {
    if (status != KINTSUGI_SUCCESS) throw std::runtime_error(last_error());
  }

  void* library;
  decltype(&kintsugi_plan_create) plan_create = nullptr;
  decltype(&kintsugi_plan_destroy) plan_destroy = nullptr;
  decltype(&kintsugi_plan_workspace_size) plan_workspace_size = nullptr;
  decltype(&kintsugi_plan_execute) plan_execute = nullptr;
  decltype(&kintsugi_last_error) last_error = nullptr;
};

struct Case {
  const char* name;
  std::int64_t m, n, k;
  bool is_fp64;
  const char* accuracy = nullptr;
  const char* policy = nullptr;
  const char* scheme = nullptr;
  double phi = 0.5;  // elements are (rand - 0.5) exp(phi randn)
};

constexpr const char* emulate = "emulate";
const Case cases[] = {
    {"fp16x3", 64, 64, 64, false, nullptr, nullptr, "fp16x3"},
    {"fp32, emulated", 128, 128, 128, false, nullptr, emulate},
    {"fp32, emulated", 1024, 1024, 1024, false, nullptr, emulate},
    {"fp64, emulated", 128, 128, 128, true, nullptr, emulate},
    {"fp64, emulated", 1024, 1024, 1024, true, nullptr, emulate},
    {"fp32, native", 128, 128, 128, false, nullptr, "native"},
    {"fp64, native", 128, 128, 128, true, nullptr, "native"},
    {"fp32", 1024, 1024, 1024, false},
    {"fp32", 2048, 2048, 2048, false},
    {"fp32", 4096, 4096, 4096, false},
    {"fp32", 8192, 8192, 8192, false},
    {"fp32", 4096, 4096, 4096, false, nullptr, nullptr, nullptr, 2},
    {"fp32", 4096, 4096, 4096, false, nullptr, nullptr, nullptr, 4},
    {"fp32", 16, 4096, 4096, false},
    {"fp32", 4096, 4096, 128, false},
    {"fp64", 2048, 2048, 2048, true},
    {"fp64", 4096, 4096, 4096, true},
    {"fp64", 8192, 8192, 8192, true},
    {"fp64", 4096, 4096, 4096, true, nullptr, nullptr, nullptr, 2},
    {"fp64", 4096, 4096, 4096, true, nullptr, nullptr, nullptr, 4},
    {"exact fp64", 128, 128, 128, true, "exact"},
    {"exact fp64", 1024, 1024, 1024, true, "exact"},
    {"exact fp64", 4096, 4096, 4096, true, "exact"},
    {"exact fp64", 4096, 4096, 4096, true, "exact", nullptr, nullptr, 2},
    {"exact fp64", 4096, 4096, 4096, true, "exact", nullptr, nullptr, 4},
    {"exact fp32", 4096, 4096, 4096, false, "exact"},
    {"mixpert-1", 4096, 4096, 4096, false, nullptr, nullptr, "mixpert-1"},
};

template <class T>
void fill(const Memory& memory, std::int64_t count, double phi, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Pattern<T> pattern(seed);
  for (T& x : pattern.values) x = static_cast<T>(static_cast<double>(x) * std::exp(phi * normal(random)));
  pattern.fill(memory, static_cast<std::size_t>(count));
}

double microseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A build's plan of a case, its calls, and what they took.
class Calls {
 public:
  Calls(const Build& build, const Case& given, const Memory& a, const Memory& b, const Memory& c,
        const measure::DeviceStream& stream)
      : build_(build), stream_(stream) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = problem.lda = problem.ldc = given.m;
    problem.n = given.n;
    problem.k = problem.ldb = given.k;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar =
        given.is_fp64 ? KINTSUGI_F64 : KINTSUGI_F32;
    problem.memory = KINTSUGI_DEVICE;
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.accuracy = given.accuracy;
    options.policy = given.policy;
    options.scheme = given.scheme;
    build.demand(build.plan_create(nullptr, &problem, &options, &plan_));
    std::size_t bytes = 0;
    build.demand(build.plan_workspace_size(plan_, &bytes));
    workspace_ = std::make_unique<Memory>(std::max<std::size_t>(bytes, 256));
    operands_.a = a.data();
    operands_.b = b.data();
    operands_.c = c.data();
    operands_.alpha = given.is_fp64 ? static_cast<const void*>(&one) : &one_as_float;
    operands_.beta = &zero;
    operands_.workspace = bytes == 0 ? nullptr : workspace_->data();
    operands_.workspace_size = bytes;
    operands_.queue = {KINTSUGI_QUEUE_CUDA, 0, stream.native()};
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() { build_.plan_destroy(plan_); }

  void call() const { build_.demand(build_.plan_execute(nullptr, plan_, &operands_)); }
  void wait() const { check(driver().stream_synchronize(stream_.native()), "cuStreamSynchronize"); }

  void measure(int calls) {
    wait();
    const double begin = microseconds();
    call();
    idle_.push_back(microseconds() - begin);
    wait();
    const double first = microseconds();
    for (int i = 0; i < calls; ++i) call();
    wait();
    times_.push_back((microseconds() - first) / calls);
  }

  double idle() const { return median(idle_); }
  double time() const { return median(times_); }

 private:
  static constexpr double one = 1;
  static constexpr double zero = 0;  // also an FP32 zero
  static constexpr float one_as_float = 1;

  const Build& build_;
  const measure::DeviceStream& stream_;
  kintsugi_plan plan_ = nullptr;
  kintsugi_operands operands_ = KINTSUGI_OPERANDS_INIT;
  std::unique_ptr<Memory> workspace_;
  std::vector<double> idle_, times_;
};

std::vector<std::uint8_t> result_of(const Calls& calls, const Memory& c, std::size_t bytes) {
  std::vector<std::uint8_t> found(bytes, 0xff);
  core::cuda::copy_to_device({}, c.data(), found.data(), bytes);
  for (int i = 0; i < 5; ++i) calls.call();  // the last one as a graph
  calls.wait();
  core::cuda::copy_to_host({}, found.data(), c.data(), bytes);
  core::cuda::synchronize(Queue{});
  return found;
}

bool compare(const std::array<Build, 2>& builds, const Case& given, const measure::DeviceStream& stream,
             nlohmann::json& rows) {
  const std::size_t element = given.is_fp64 ? sizeof(double) : sizeof(float);
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count) * element; };
  const Memory a(bytes(given.m * given.k)), b(bytes(given.k * given.n)), c(bytes(given.m * given.n));
  const auto fill_operand = given.is_fp64 ? fill<double> : fill<float>;
  fill_operand(a, given.m * given.k, given.phi, 1);
  fill_operand(b, given.k * given.n, given.phi, 2);
  core::cuda::synchronize();
  Calls before(builds[0], given, a, b, c, stream), after(builds[1], given, a, b, c, stream);
  const bool same_bits =
      result_of(before, c, bytes(given.m * given.n)) == result_of(after, c, bytes(given.m * given.n));
  constexpr double long_call = 1e10;
  const double products =
      static_cast<double>(given.m) * static_cast<double>(given.n) * static_cast<double>(given.k);
  for (int round = 0; round < 16; ++round) {
    Calls& first = round % 2 == 0 ? before : after;
    Calls& second = round % 2 == 0 ? after : before;
    first.measure(products > long_call ? 8 : 40);
    second.measure(products > long_call ? 8 : 40);
  }
  fmt::print(
      "{:15}{:5} x{:5} x{:5}, phi {:3}{:10.2f}{:10.2f} us  ratio {:.3f}, calling thread{:8.2f}{:8.2f} us{}\n",
      given.name, given.m, given.n, given.k, given.phi, before.time(), after.time(),
      before.time() / after.time(), before.idle(), after.idle(), same_bits ? "" : ", OTHER BITS");
  std::fflush(stdout);
  rows.push_back({{"case", given.name},
                  {"m", given.m},
                  {"n", given.n},
                  {"k", given.k},
                  {"phi", given.phi},
                  {"us", {before.time(), after.time()}},
                  {"idle_us", {before.idle(), after.idle()}},
                  {"same_bits", same_bits}});
  return same_bits;
}

}  // namespace
}  // namespace kintsugi::core

int main(int argc, char** argv) {
  using namespace kintsugi::core;
  const bool has_json = argc == 5 && std::strcmp(argv[3], "--json") == 0;
  if (argc != 1 && argc != 3 && !has_json) {
    fmt::print(stderr, "usage: build_rate [BEFORE.so AFTER.so [--json FILE]]\n");
    return 2;
  }
  return run_on_device("build_rate", [&] {
    const std::string own =
        (std::filesystem::canonical("/proc/self/exe").parent_path() / "libkintsugi.so.0").string();
    const std::array<Build, 2> builds{Build(argc > 1 ? argv[1] : own), Build(argc > 1 ? argv[2] : own)};
    const kintsugi::measure::DeviceStream stream;
    nlohmann::json rows = nlohmann::json::array();
    bool same_bits = true;
    for (const Case& given : cases) same_bits = compare(builds, given, stream, rows) && same_bits;
    write_json(has_json ? argv[4] : nullptr, {{"device", cuda::text_of_device(0)}, {"rows", rows}});
    return same_bits ? 0 : 1;
  });
}
