// Not a test: measures the steps of Ozaki scheme I on the device, for the figures of dgemm-tc: rates by range
// (Figs. 4, 6, 9, Table 1) and where the time goes (Figs. 5a, 7a).
//   build/tests/slice_rate [--json FILE] [--quick]
// A plan's steps run as far as each stage; a stage's time is the difference of two medians. 16 elements of
// every product are compared with sums in long double first. Rows of cuBLAS are a product of fp16 slices,
// alone or in a batch, and DGEMM or SGEMM.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "engines/cuda/cublas.hpp"
#include "execute/device/memory.hpp"
#include "execute/device/steps.hpp"
#include "planner/device_call.hpp"
#include "planner/plan.hpp"
#include "tests/gpu/rates/rate.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

// Elements of an operand: an odd number of random ones, repeated.
template <class T>
struct Elements {
  Elements(const std::string& distribution, measure::Side side, std::int64_t count)
      : values((1 << 22) - 3), memory(static_cast<std::size_t>(count) * sizeof(T)) {
    const auto size = static_cast<std::int64_t>(values.size());
    measure::fill(measure::parse_distribution(distribution), side, 1,
                  MatrixView<T>{values.data(), 1, size, size, 1});
    Pattern<T> pattern(1);
    pattern.values = values;
    pattern.fill(memory, static_cast<std::size_t>(count));
  }
  T at(std::int64_t index) const { return values[static_cast<std::size_t>(index) % values.size()]; }

  std::vector<T> values;
  Memory memory;
};

// Seconds of one run, by events.
template <class Run>
double once(const Run& run) {
  cuda::Event start = nullptr;
  cuda::Event stop = nullptr;
  check(driver().event_create(&start, 0), "cuEventCreate");
  check(driver().event_create(&stop, 0), "cuEventCreate");
  check(driver().event_record(start, nullptr), "cuEventRecord");
  run();
  check(driver().event_record(stop, nullptr), "cuEventRecord");
  check(driver().event_synchronize(stop), "cuEventSynchronize");
  float milliseconds = 0;
  check(driver().event_elapsed(&milliseconds, start, stop), "cuEventElapsedTime");
  driver().event_destroy(start);
  driver().event_destroy(stop);
  return 1e-3 * milliseconds;
}

// Median of the seconds of three runs after another one.
template <class Run>
double seconds_of(const Run& run) {
  std::vector<double> times;
  for (int round = 0; round < 4; ++round) times.push_back(once(run));
  return median({times.begin() + 1, times.end()});
}

struct Stage {
  const char* name;
  std::vector<StepKind> steps;  // besides those of earlier stages
};
const std::vector<Stage> stages{{"ranges", {StepKind::find_ranges, StepKind::select}},
                                {"counts and split of A", {StepKind::count_slices}},
                                {"splits", {StepKind::split_successively}},
                                {"products and sums", {StepKind::multiply_successively}},
                                {"end", {}}};

template <class T>
class Call {
 public:
  Call(const std::string& scheme, std::int64_t n, const Elements<T>& a, const Elements<T>& b)
      : n_(n), a_(a), b_(b), plan_(plan_of(scheme)), c_(bytes_of_matrix()), workspace_(plan_.workspace_bytes),
        report_(sizeof(LongDeviceReport)), operands_{
                                               .a = device_operand(plan_.problem, Side::a, a.memory.data()),
                                               .b = device_operand(plan_.problem, Side::b, b.memory.data()),
                                               .c = device_result(plan_.problem, c_.data()),
                                               .scalars = {}} {}

  const Plan& plan() const { return plan_; }
  void run(std::span<const Step> steps) const {
    run_in_queue(plan_, steps, plan_.blocking, operands_, {}, {workspace_.data(), plan_.workspace_bytes});
  }

  // Returns the counts of slices and products.
  Ozaki1Counts counts() {
    cuda::clear({}, report_.data(), sizeof(LongDeviceReport));
    operands_.report = reinterpret_cast<DeviceReport*>(report_.data());
    run(plan_.steps);
    operands_.report = nullptr;
    Report report;
    read_device_report(plan_, reinterpret_cast<DeviceReport*>(report_.data()), report);
    if (report.items_unreachable != 0) throw std::runtime_error("slice_rate: the slices do not suffice");
    return report.ozaki1;
  }

  // Fails if an element of C errs by more than 8 sqrt(k) of the accuracy's units.
  void check(double unit) const {
    std::vector<T> c(static_cast<std::size_t>(n_ * n_));
    cuda::copy_to_host({}, c.data(), c_.data(), bytes_of_matrix());
    cuda::synchronize(Queue{});
    for (std::int64_t e = 0; e < 16; ++e) {
      const std::int64_t i = e * 7919 % n_;
      const std::int64_t j = e * 104729 % n_;
      long double sum = 0, magnitude = 0;
      for (std::int64_t p = 0; p < n_; ++p) {
        const long double product = static_cast<long double>(a_.at(i + p * n_)) * b_.at(p + j * n_);
        sum += product;
        magnitude += std::abs(product);
      }
      const T found = c[static_cast<std::size_t>(i + j * n_)];
      const auto error = static_cast<double>(std::abs(found - sum) / magnitude);
      if (!(error <= 8 * std::sqrt(static_cast<double>(n_)) * unit))
        throw std::runtime_error(fmt::format("slice_rate: element {}, {} is {}", i, j, found));
    }
  }

 private:
  std::size_t bytes_of_matrix() const { return static_cast<std::size_t>(n_ * n_) * sizeof(T); }
  Plan plan_of(const std::string& scheme) const {
    SettingLayer call;
    call.set(find_setting("scheme"), scheme, "the study");
    const Problem problem{.m = n_,
                          .n = n_,
                          .k = n_,
                          .lda = n_,
                          .ldb = n_,
                          .ldc = n_,
                          .type = sizeof(T) == 8 ? OperandType::f64 : OperandType::f32,
                          .memory = MemorySpace::device};
    return make_plan(problem, Settings(call, {}, {}, {}), {});
  }

  std::int64_t n_;
  const Elements<T>& a_;
  const Elements<T>& b_;
  Plan plan_;
  Memory c_, workspace_, report_;
  DeviceOperands operands_;
};

template <class T>
void time_scheme(nlohmann::json& rows, const std::string& scheme, const std::string& distribution,
                 std::int64_t n, const Elements<T>& a, const Elements<T>& b) {
  Call<T> call(scheme, n, a, b);
  const Ozaki1Counts counts = call.counts();
  const bool is_sp = sizeof(T) == 4;
  call.check(is_sp ? 0x1p-24 : 0x1p-53);
  std::vector<Step> steps = call.plan().steps;
  for (Step& step : steps) {
    for (const Stage& stage : stages) {
      for (const StepKind kind : stage.steps)
        if (step.kind == kind) step.when = CallProperty::never;
    }
  }
  const auto mean = [&](std::int64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(counts.blocks);
  };
  nlohmann::json row{{"scheme", scheme},
                     {"type", is_sp ? "f32" : "f64"},
                     {"distribution", distribution},
                     {"n", n},
                     {"blocks", counts.blocks},
                     {"slices", mean(counts.slices_a)},
                     {"products", mean(counts.products)}};
  double before = 0;
  std::string parts;
  for (const Stage& stage : stages) {
    if (stage.steps.empty()) {
      steps = call.plan().steps;
    } else {
      for (std::size_t s = 0; s < steps.size(); ++s) {
        for (const StepKind kind : stage.steps)
          if (steps[s].kind == kind) steps[s].when = call.plan().steps[s].when;
      }
    }
    const double until = seconds(
        1, [&](int) { call.run(steps); }, 3);
    row["seconds"][stage.name] = until - before;
    parts += fmt::format(" {} {:.2f}", stage.name, 1e3 * (until - before));
    before = until;
  }
  const double operations = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  row["seconds"]["whole"] = before;
  row["rate"] = operations / before;
  fmt::print("{:28} {} {:8} n {:6}: {:5.1f} slices {:6.1f} products {:8.2f} ms {:7.3f} TFLOP/s; ms:{}\n",
             scheme, is_sp ? "f32" : "f64", distribution, n, row["slices"].get<double>(),
             row["products"].get<double>(), 1e3 * before, operations / before * 1e-12, parts);
  std::fflush(stdout);
  rows.push_back(row);
}

// One product of cuBLAS: of fp16 slices with FP32 sums, or of the operands.
void add_vendor(nlohmann::json& rows, const char* name, std::int64_t n, double time) {
  const double operations = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  fmt::print("{:28} n {:6}: {:8.2f} ms {:7.2f} TFLOP/s\n", name, n, 1e3 * time, operations / time * 1e-12);
  std::fflush(stdout);
  rows.push_back({{"scheme", name}, {"n", n}, {"seconds", {{"whole", time}}}, {"rate", operations / time}});
}

// Products of fp16 slices with FP32 sums, n x n over n: one by one, and `count` by cublasGemmBatchedEx.
void time_slices(nlohmann::json& rows, std::int64_t n, std::int64_t count) {
  const auto elements = static_cast<std::size_t>(n * n);
  const Memory slices(2 * elements), sums(4 * elements * static_cast<std::size_t>(count));
  std::vector<std::uint16_t> integers((1 << 22) - 3);
  measure::Random random(1);
  for (std::uint16_t& x : integers)
    x = static_cast<std::uint16_t>(encode(fp16, std::rint(32 * random.symmetric())));
  Pattern<std::uint16_t> pattern(1);
  pattern.values = integers;
  pattern.fill(slices, elements);
  std::vector<const void*> operands(static_cast<std::size_t>(count), slices.data());
  std::vector<void*> results;
  for (std::int64_t p = 0; p < count; ++p)
    results.push_back(sums.data() + 4 * elements * static_cast<std::size_t>(p));
  const Memory pointers(2 * operands.size() * sizeof(void*));
  cuda::copy_to_device({}, pointers.data(), operands.data(), operands.size() * sizeof(void*));
  cuda::copy_to_device({}, pointers.data() + operands.size() * sizeof(void*), results.data(),
                       operands.size() * sizeof(void*));
  const auto* inputs = reinterpret_cast<const void* const*>(pointers.data());
  auto* const outputs = reinterpret_cast<void* const*>(pointers.data() + operands.size() * sizeof(void*));
  cuda::BlasHandle handle = nullptr;
  cuda::check_blas(cuda::cublas().create(&handle), "cublasCreate");
  const float one = 1, zero = 0;
  using cuda::ComputeType;
  using cuda::DataType;
  const double single = seconds_of([&] {
    for (std::int64_t p = 0; p < count; ++p) {
      cuda::check_blas(
          cuda::cublas().gemm(handle, 1, 0, n, n, n, &one, slices.data(), DataType::f16, n, slices.data(),
                              DataType::f16, n, &zero, results[static_cast<std::size_t>(p)], DataType::f32, n,
                              ComputeType::f32, cuda::default_algorithm),
          "cublasGemmEx");
    }
  });
  add_vendor(rows, "cublasGemmEx, fp16", n, single / static_cast<double>(count));
  const double batched = seconds_of([&] {
    cuda::check_blas(cuda::cublas().gemm_pointers(handle, 1, 0, n, n, n, &one, inputs, DataType::f16, n,
                                                  inputs, DataType::f16, n, &zero, outputs, DataType::f32, n,
                                                  count, ComputeType::f32, cuda::default_algorithm),
                     "cublasGemmBatchedEx");
  });
  add_vendor(rows, "cublasGemmBatchedEx, fp16", n, batched / static_cast<double>(count));
}

template <class T>
void time_native(nlohmann::json& rows, std::int64_t n, const Elements<T>& a, const Elements<T>& b) {
  const Memory c(static_cast<std::size_t>(n * n) * sizeof(T)), scratch(cuda::vendor_workspace_bytes);
  const DeviceBlasProduct product{.type = sizeof(T) == 8 ? ElementType::f64 : ElementType::f32,
                                  .m = n,
                                  .n = n,
                                  .k = n,
                                  .a = a.memory.data(),
                                  .b = b.memory.data(),
                                  .c = c.data(),
                                  .lda = n,
                                  .ldb = n,
                                  .ldc = n,
                                  .scalars = {},
                                  .scratch_bytes = cuda::vendor_workspace_bytes};
  add_vendor(rows, sizeof(T) == 8 ? "cuBLAS DGEMM" : "cuBLAS SGEMM", n,
             seconds(
                 1, [&](int) { cuda::multiply_by_vendor({}, product, scratch.data()); }, 3));
}

template <class T>
void time_size(nlohmann::json& rows, std::int64_t n, const std::vector<std::string>& distributions,
               const std::vector<std::string>& schemes, const char* file) {
  for (const std::string& distribution : distributions) {
    const Elements<T> a(distribution, measure::Side::a, n * n);
    const Elements<T> b(distribution, measure::Side::b, n * n);
    if (distribution == distributions.front()) time_native(rows, n, a, b);
    for (const std::string& scheme : schemes) time_scheme(rows, scheme, distribution, n, a, b);
    write_json(file, rows);
  }
}

int run(const char* file, bool quick) {
  nlohmann::json rows = nlohmann::json::array();
  const std::vector<std::string> dp{"ozaki-fp16"};
  if (quick) {
    time_slices(rows, 8192, 8);
    time_size<double>(rows, 8192, {"phi:0.5", "phi:0.1", "phi:2"}, {"ozaki-fp16", "ozaki-fp16:k-block=1024"},
                      file);
    time_size<double>(rows, 4096, {"phi:0.5"}, {"ozaki-fp16", "ozaki-fp16:grid=sigma", "ozaki-fp16:mode=cr"},
                      file);
    return 0;
  }
  const std::vector<std::string> of_paper{"phi:0.1", "phi:1", "phi:2"};
  for (const std::int64_t n : {8192, 4096, 2048, 1024}) {
    time_slices(rows, n, n <= 2048 ? 36 : 8);
    time_size<double>(rows, n, {"phi:0.1", "phi:0.5", "phi:1", "phi:2"},
                      {"ozaki-fp16", "ozaki-fp16:k-block=1024", "ozaki-fp16:grid=sigma"}, file);
    time_size<float>(rows, n, of_paper, dp, file);
  }
  time_size<double>(rows, 4096, of_paper, {"ozaki-fp16:mode=cr", "ozaki-fp64"}, file);
  time_slices(rows, 10240, 4);
  time_size<double>(rows, 10240, of_paper, dp, file);
  time_size<double>(rows, 10240, {"phi:1"}, {"ozaki-fp16:mode=cr"}, file);
  return 0;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** arguments) {
  const char* file = nullptr;
  bool quick = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--quick") == 0) {
      quick = true;
    } else if (std::strcmp(arguments[i], "--json") == 0 && i + 1 < count) {
      file = arguments[++i];
    } else {
      fmt::print(stderr, "usage: slice_rate [--json FILE] [--quick]\n");
      return 2;
    }
  }
  return kintsugi::core::run_on_device("slice_rate", [&] { return kintsugi::core::run(file, quick); });
}
