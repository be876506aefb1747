// Not a test: measures the host's time of repeated calls on device matrices, from call to return.
//   build/tests/call_rate [--json FILE]
// Beside cuBLAS's own calls: kintsugi_gemm under the policies native and auto, one problem again and again
// and 500 problems in turn, and kintsugi_plan_execute. A round is 200 calls, before which the device is idle,
// so that no call waits because the stream is full; times are medians of 15 rounds, in both orders.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "kintsugi/kintsugi.h"
#include "lab/machine/device.hpp"
#include "lab/random.hpp"

namespace kintsugi::test {
namespace {

constexpr int calls_of_round = 200;

// cuBLAS's FP32 product by its own entry points.
class Cublas {
 public:
  explicit Cublas(void* stream) {
    const char* named = std::getenv("KINTSUGI_CUBLAS");
    const char* file = named == nullptr ? "libcublas.so.13" : named;
    void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("call_rate: cannot open ") + file);
    const auto create = reinterpret_cast<int (*)(void**)>(::dlsym(library, "cublasCreate_v2"));
    const auto set_stream = reinterpret_cast<int (*)(void*, void*)>(::dlsym(library, "cublasSetStream_v2"));
    multiply_ = reinterpret_cast<Multiply>(::dlsym(library, "cublasSgemm_v2"));
    if (create == nullptr || set_stream == nullptr || multiply_ == nullptr || create(&handle_) != 0 ||
        set_stream(handle_, stream) != 0)
      throw std::runtime_error("call_rate: cuBLAS has no handle");
  }
  void multiply(int n, const float* a, const float* b, float* c) const {
    const float one = 1;
    const float zero = 0;
    if (multiply_(handle_, 0, 0, n, n, n, &one, a, n, b, n, &zero, c, n) != 0)
      throw std::runtime_error("call_rate: cuBLAS refuses a product");
  }

 private:
  using Multiply = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                           const float*, float*, int);
  void* handle_ = nullptr;
  Multiply multiply_ = nullptr;
};

kintsugi_problem problem_of(int n) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = problem.n = problem.k = n;
  problem.lda = problem.ldb = problem.ldc = n;
  problem.memory = KINTSUGI_DEVICE;
  return problem;
}

void require(kintsugi_status status) {
  if (status != KINTSUGI_SUCCESS)
    throw std::runtime_error(std::string("call_rate: ") + kintsugi_last_error());
}

// Median microseconds of a call of a round on an idle device.
double host_microseconds(const lab::DeviceStream& stream, const std::function<void(int)>& call) {
  for (int i = 0; i < calls_of_round; ++i) call(i);
  std::vector<double> times;
  for (int round = 0; round < 15; ++round) {
    stream.synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_of_round; ++i) call(i);
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
        calls_of_round);
  }
  stream.synchronize();
  std::nth_element(times.begin(), times.begin() + 7, times.end());
  return times[7];
}

class Calls {
 public:
  explicit Calls(int n)
      : n_(n), cublas_(stream_.native()), bytes_(std::size_t{16} << 20), a_(bytes_), b_(bytes_), c_(bytes_) {
    std::vector<float> numbers(bytes_ / sizeof(float));
    lab::Random random(1);
    for (const lab::DeviceMemory* operand : {&a_, &b_}) {
      for (float& x : numbers) x = static_cast<float>(random.symmetric());
      stream_.upload(operand->data(), numbers.data(), bytes_);
      stream_.synchronize();
    }
    operands_.alpha = &one_;
    operands_.beta = &zero_;
    operands_.a = a_.data();
    operands_.b = b_.data();
    operands_.c = c_.data();
  }

  double cublas() const {
    return host_microseconds(stream_, [&](int) {
      cublas_.multiply(n_, reinterpret_cast<const float*>(a_.data()),
                       reinterpret_cast<const float*>(b_.data()), reinterpret_cast<float*>(c_.data()));
    });
  }
  double gemm(const char* policy, bool different) const {
    const kintsugi_options options = options_of(policy);
    int next = 0;
    return host_microseconds(stream_, [&](int) {
      constexpr int problems = 500;
      kintsugi_problem problem = problem_of(n_);
      if (different) problem.k = n_ - next++ % std::min(problems, n_);
      require(kintsugi_gemm(nullptr, &problem, &options, &operands_));
    });
  }
  double plan(const char* policy) const {
    const kintsugi_options options = options_of(policy);
    const kintsugi_problem problem = problem_of(n_);
    kintsugi_plan plan = nullptr;
    std::size_t bytes = 0;
    require(kintsugi_plan_create(nullptr, &problem, &options, &plan));
    require(kintsugi_plan_workspace_size(plan, &bytes));
    const lab::DeviceMemory workspace(std::max<std::size_t>(bytes, 256));
    kintsugi_operands operands = operands_;
    operands.workspace = bytes > 0 ? workspace.data() : nullptr;
    operands.workspace_size = bytes;
    const double time =
        host_microseconds(stream_, [&](int) { require(kintsugi_plan_execute(nullptr, plan, &operands)); });
    kintsugi_plan_destroy(plan);
    return time;
  }

 private:
  kintsugi_options options_of(const char* policy) const {
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.policy = policy;
    options.queue = {KINTSUGI_QUEUE_CUDA, 0, stream_.native()};
    return options;
  }

  int n_;
  lab::DeviceStream stream_;
  Cublas cublas_;
  std::size_t bytes_;
  lab::DeviceMemory a_, b_, c_;
  float one_ = 1;
  float zero_ = 0;
  kintsugi_operands operands_ = KINTSUGI_OPERANDS_INIT;
};

int run(const char* file) {
  nlohmann::json rows = nlohmann::json::array();
  for (const int n : {128, 512, 1024, 2048}) {
    const Calls calls(n);
    const double before = calls.cublas();
    const nlohmann::json row{{"n", n},
                             {"gemm_native", calls.gemm("native", false)},
                             {"gemm_auto", calls.gemm("auto", false)},
                             {"gemm_emulate", calls.gemm("emulate", false)},
                             {"plan_native", calls.plan("native")},
                             {"plan_emulate", calls.plan("emulate")},
                             {"gemm_native_500_problems", calls.gemm("native", true)},
                             {"gemm_emulate_500_problems", calls.gemm("emulate", true)},
                             {"cublas_before", before},
                             {"cublas", calls.cublas()}};
    for (const auto& [name, value] : row.items())
      fmt::print("n = {:<5} {:28} {:8.2f} {}\n", n, name, value.get<double>(), name == "n" ? "" : "us");
    rows.push_back(row);
    std::fflush(stdout);
  }
  if (file != nullptr) std::ofstream(file) << rows.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace kintsugi::test

int main(int count, char** arguments) {
  const bool has_file = count == 3 && std::strcmp(arguments[1], "--json") == 0;
  if (count != 1 && !has_file) {
    fmt::print(stderr, "usage: call_rate [--json FILE]\n");
    return 2;
  }
  try {
    if (const std::string reason = kintsugi::lab::device_missing_reason(); !reason.empty()) {
      fmt::print(stderr, "call_rate: {}\n", reason);
      return 1;
    }
    return kintsugi::test::run(has_file ? arguments[2] : nullptr);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
