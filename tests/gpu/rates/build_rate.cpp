// Not a test: compares two builds of the library on the device: bits of C, times of calls, and the time that
// the calling thread spends in each. build/tests/build_rate [BEFORE.so AFTER.so [--json FILE] [--random
// SECONDS]] Without arguments the library beside the program is measured twice. Plans, workspaces and a
// stream are given. Each round times 8 or 40 calls of one build, then of the other, in changing order; times
// are medians of 16 rounds. `idle_us` is the calling thread's time for a call while the device does nothing.
// --random: instead, for so many seconds, compares statuses and bits of random calls.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
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
    find(gemm, "kintsugi_gemm");
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
  decltype(&kintsugi_gemm) gemm = nullptr;
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
  double beta = 0;
  bool is_complex = false;

  std::size_t element_bytes() const {
    return (is_fp64 ? sizeof(double) : sizeof(float)) * (is_complex ? 2 : 1);
  }
  kintsugi_type type() const {
    if (is_complex) return is_fp64 ? KINTSUGI_C64 : KINTSUGI_C32;
    return is_fp64 ? KINTSUGI_F64 : KINTSUGI_F32;
  }
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
    {"fp64, update", 4096, 4096, 4096, true, nullptr, nullptr, nullptr, 0.5, 1},
    {"fp64, beta 0.7", 4096, 4096, 4096, true, nullptr, nullptr, nullptr, 0.5, 0.7},
    {"fp32, update", 4096, 4096, 4096, false, nullptr, nullptr, nullptr, 0.5, 1},
    {"fp32, 256 deep", 8192, 8192, 256, false},
    {"fp64, 64 wide", 64, 8192, 8192, true, nullptr, emulate},
    {"complex fp64", 4096, 4096, 4096, true, nullptr, nullptr, nullptr, 0.5, 0, true},
    {"complex update", 2048, 2048, 2048, true, nullptr, emulate, nullptr, 0.5, 1, true},
    {"complex fp32", 4096, 4096, 4096, false, nullptr, emulate, nullptr, 0.5, 0, true},
    {"ozaki2 on fp32", 4096, 4096, 4096, false, nullptr, nullptr, "ozaki2:moduli=8"},
    {"int52", 1024, 1024, 1024, true, nullptr, nullptr, "int52"},
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
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = given.type();
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
    alpha_ = {1, 0}, beta_ = {given.beta, 0};
    alpha_as_float_ = {1, 0}, beta_as_float_ = {static_cast<float>(given.beta), 0};
    operands_.alpha = given.is_fp64 ? static_cast<const void*>(&alpha_) : &alpha_as_float_;
    operands_.beta = given.is_fp64 ? static_cast<const void*>(&beta_) : &beta_as_float_;
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
  const Build& build_;
  const measure::DeviceStream& stream_;
  kintsugi_plan plan_ = nullptr;
  kintsugi_operands operands_ = KINTSUGI_OPERANDS_INIT;
  std::complex<double> alpha_, beta_;
  std::complex<float> alpha_as_float_, beta_as_float_;
  std::unique_ptr<Memory> workspace_;
  std::vector<double> idle_, times_;
};

// C after five calls. Before them C is NaN or, if it is read, finite.
std::vector<std::uint8_t> result_of(const Calls& calls, const Memory& c, std::size_t bytes, bool reads_c) {
  std::vector<std::uint8_t> found(bytes, reads_c ? 0x3f : 0xff);
  core::cuda::copy_to_device({}, c.data(), found.data(), bytes);
  for (int i = 0; i < 5; ++i) calls.call();  // the last one as a graph
  calls.wait();
  core::cuda::copy_to_host({}, found.data(), c.data(), bytes);
  core::cuda::synchronize(Queue{});
  return found;
}

bool compare(const std::array<Build, 2>& builds, const Case& given, const measure::DeviceStream& stream,
             nlohmann::json& rows) {
  const auto bytes = [&](std::int64_t count) {
    return static_cast<std::size_t>(count) * given.element_bytes();
  };
  const Memory a(bytes(given.m * given.k)), b(bytes(given.k * given.n)), c(bytes(given.m * given.n));
  const auto fill_operand = given.is_fp64 ? fill<double> : fill<float>;
  const std::int64_t parts = given.is_complex ? 2 : 1;
  fill_operand(a, parts * given.m * given.k, given.phi, 1);
  fill_operand(b, parts * given.k * given.n, given.phi, 2);
  core::cuda::synchronize();
  Calls before(builds[0], given, a, b, c, stream), after(builds[1], given, a, b, c, stream);
  const auto result = [&](const Calls& calls) {
    return result_of(calls, c, bytes(given.m * given.n), given.beta != 0);
  };
  const bool same_bits = result(before) == result(after);
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

// Random calls on device matrices: shapes, transposes, strides, batches, scalars, types, accuracies and
// schemes, and data of narrow and wide ranges with zeros and special values among them.
class RandomCalls {
 public:
  explicit RandomCalls(const std::array<Build, 2>& builds) : builds_(builds) {}

  // Returns the number of calls whose status or C differ between the builds.
  int compare_for(double seconds) {
    const double end = microseconds() + 1e6 * seconds;
    int calls = 0, refused = 0, different = 0;
    for (; microseconds() < end; ++calls) {
      draw();
      const kintsugi_status statuses[]{run(0), run(1)};
      if (statuses[0] != KINTSUGI_SUCCESS) ++refused;
      if (statuses[0] == statuses[1] && results_[0] == results_[1]) continue;
      ++different;
      fmt::print("DIFFERS (status {} and {}): {}\n", static_cast<int>(statuses[0]),
                 static_cast<int>(statuses[1]), words());
    }
    fmt::print("{} random calls, {} refused by both builds alike, {} different\n", calls, refused, different);
    return different;
  }

 private:
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }
  template <class Choices>
  auto one_of(const Choices& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(choices))))];
  }
  std::int64_t draw_size(double most) {
    return static_cast<std::int64_t>(std::exp2(std::log2(most) * static_cast<double>(below(1001)) / 1000));
  }

  void draw() {
    static constexpr const char* accuracies[]{nullptr, nullptr, "exact", "reproducible", "1e-4", "1e-10"};
    static constexpr const char* schemes[]{
        "fp16x3",           "fp16x3-wide",      "bf16x6",     "bf16x9",     "h2sgemm",
        "legemm",           "int8x6",           "quantensor", "mixpert-1",  "mixpert-4",
        "split-n",          "tf32x3",           "int52",      "ozaki2",     "ozaki2:moduli=8",
        "ozaki2:moduli=18", "ozaki2:moduli=24", "ozaki-fp16", "ozaki-int8", "superaccumulator"};
    static constexpr double scalars[]{1, 1, 1, -1, 0.7, 0};
    problem_ = KINTSUGI_PROBLEM_INIT;
    options_ = KINTSUGI_OPTIONS_INIT;
    const bool is_fp64 = below(2) == 0, is_complex = below(3) == 0;
    const int type = is_complex ? (is_fp64 ? KINTSUGI_C64 : KINTSUGI_C32)
                     : is_fp64  ? KINTSUGI_F64
                                : KINTSUGI_F32;
    parts_ = is_complex ? 2 : 1;
    element_ = parts_ * (is_fp64 ? 8 : 4);
    const double most = below(8) == 0 ? 3000 : 700;
    problem_.m = draw_size(most), problem_.n = draw_size(most),
    problem_.k = draw_size(below(8) == 0 ? 20000 : most);
    if (problem_.m * problem_.n * problem_.k > (std::int64_t{1} << 31)) problem_.k = 1 + problem_.k % 300;
    problem_.op_a = static_cast<int>(below(3)), problem_.op_b = static_cast<int>(below(3));
    problem_.layout = static_cast<int>(below(2));
    problem_.batch_count = below(4) == 0 ? 1 + below(3) : 1;
    problem_.type_a = problem_.type_b = problem_.type_c = problem_.type_scalar = type;
    problem_.memory = KINTSUGI_DEVICE;
    const auto shape = [&](std::int64_t rows, std::int64_t columns, int op, std::int64_t& ld,
                           std::int64_t& stride) {
      const bool by_rows = (problem_.layout != 0) != (op != 0);
      ld = (by_rows ? columns : rows) + (below(3) == 0 ? below(5) : 0);
      stride = ld * (by_rows ? rows : columns);
      return stride * problem_.batch_count;
    };
    const std::int64_t a = shape(problem_.m, problem_.k, problem_.op_a, problem_.lda, problem_.stride_a);
    const std::int64_t b = shape(problem_.k, problem_.n, problem_.op_b, problem_.ldb, problem_.stride_b);
    const std::int64_t c = shape(problem_.m, problem_.n, 0, problem_.ldc, problem_.stride_c);
    options_.accuracy = one_of(accuracies);
    if (below(3) == 0) {
      options_.scheme = one_of(schemes);
      options_.accuracy = nullptr;
    } else {
      options_.policy = below(3) == 0 ? nullptr : emulate;
    }
    if (below(6) == 0) options_.workspace_limit = std::int64_t{4} << 20;
    alpha_ = one_of(scalars), beta_ = below(2) == 0 ? 0 : one_of(scalars);
    phi_ = one_of(std::array{0.1, 0.5, 0.5, 1.0, 2.0, 4.0, 8.0});
    specials_ = below(6) == 0;
    fill(a_, a), fill(b_, b), fill(c_, c);
  }

  void fill(std::vector<std::uint8_t>& bytes, std::int64_t elements) {
    const std::int64_t count = parts_ * elements;
    bytes.resize(static_cast<std::size_t>(element_ * elements));
    std::normal_distribution<double> normal;
    const bool is_fp64 = element_ / parts_ == 8;
    const bool are_integers = below(6) == 0;
    for (std::int64_t i = 0; i < count; ++i) {
      double x = (static_cast<double>(random_() % 4096) - 2047.5) / 4096 * std::exp(phi_ * normal(random_));
      if (are_integers) x = static_cast<double>(below(255) - 127);
      if (specials_ && below(2000) == 0) x = one_of(std::array{0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan("")});
      if (is_fp64) {
        reinterpret_cast<double*>(bytes.data())[i] = x;
      } else {
        reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(x);
      }
    }
  }

  kintsugi_status run(int build) {
    std::vector<std::uint8_t>& result = results_[static_cast<std::size_t>(build)];
    const Memory a(a_.size()), b(b_.size()), c(c_.size());
    core::cuda::copy_to_device({}, a.data(), a_.data(), a_.size());
    core::cuda::copy_to_device({}, b.data(), b_.data(), b_.size());
    core::cuda::copy_to_device({}, c.data(), c_.data(), c_.size());
    const std::complex<double> alpha = alpha_, beta = beta_;
    const std::complex<float> alpha_as_float{static_cast<float>(alpha_)},
        beta_as_float{static_cast<float>(beta_)};
    const bool is_fp64 = element_ / parts_ == 8;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = is_fp64 ? static_cast<const void*>(&alpha) : &alpha_as_float;
    operands.beta = is_fp64 ? static_cast<const void*>(&beta) : &beta_as_float;
    operands.a = a.data(), operands.b = b.data(), operands.c = c.data();
    const kintsugi_status status =
        builds_[static_cast<std::size_t>(build)].gemm(nullptr, &problem_, &options_, &operands);
    core::cuda::synchronize();
    result.resize(c_.size());
    core::cuda::copy_to_host({}, result.data(), c.data(), c_.size());
    core::cuda::synchronize(Queue{});
    return status;
  }

  std::string words() const {
    const auto text = [](const char* setting) { return setting == nullptr ? "-" : setting; };
    return fmt::format(
        "type {}, {} x {} x {}, ops {} {}, layout {}, ld {} {} {}, batch {}, accuracy {}, scheme {}, policy {}, limit {}, "
        "alpha {}, beta {}, phi {}, specials {}",
        problem_.type_a, problem_.m, problem_.n, problem_.k, problem_.op_a, problem_.op_b, problem_.layout,
        problem_.lda, problem_.ldb, problem_.ldc, problem_.batch_count, text(options_.accuracy),
        text(options_.scheme), text(options_.policy), options_.workspace_limit, alpha_, beta_, phi_,
        specials_);
  }

  const std::array<Build, 2>& builds_;
  std::mt19937_64 random_{std::random_device{}()};
  kintsugi_problem problem_ = KINTSUGI_PROBLEM_INIT;
  kintsugi_options options_ = KINTSUGI_OPTIONS_INIT;
  std::int64_t parts_ = 1, element_ = 4;
  double alpha_ = 1, beta_ = 0, phi_ = 0.5;
  bool specials_ = false;
  std::vector<std::uint8_t> a_, b_, c_;
  std::array<std::vector<std::uint8_t>, 2> results_;
};

}  // namespace
}  // namespace kintsugi::core

int main(int argc, char** argv) {
  using namespace kintsugi::core;
  const char* json = nullptr;
  double random_seconds = 0;
  bool is_valid = argc % 2 == 1;
  for (int i = 3; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--json") == 0) {
      json = argv[i + 1];
    } else if (std::strcmp(argv[i], "--random") == 0) {
      random_seconds = std::atof(argv[i + 1]);
    } else {
      is_valid = false;
    }
  }
  if (!is_valid) {
    fmt::print(stderr, "usage: build_rate [BEFORE.so AFTER.so [--json FILE] [--random SECONDS]]\n");
    return 2;
  }
  return run_on_device("build_rate", [&] {
    const std::string own =
        (std::filesystem::canonical("/proc/self/exe").parent_path() / "libkintsugi.so.0").string();
    const std::array<Build, 2> builds{Build(argc > 1 ? argv[1] : own), Build(argc > 1 ? argv[2] : own)};
    const kintsugi::measure::DeviceStream stream;
    nlohmann::json rows = nlohmann::json::array();
    bool same_bits = true;
    int different = 0;
    if (random_seconds > 0) {
      different = RandomCalls(builds).compare_for(random_seconds);
    } else {
      for (const Case& given : cases) same_bits = compare(builds, given, stream, rows) && same_bits;
    }
    write_json(json, {{"device", cuda::text_of_device(0)}, {"rows", rows}, {"different_calls", different}});
    return same_bits && different == 0 ? 0 : 1;
  });
}
