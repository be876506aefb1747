// Not a test: measures native products on the device by Kintsugi's own kernels and by cuBLAS, in turns on the
// same operands.
//   build/tests/device_native_rate [--json FILE] [--quick]
// With --random, measures calls of random shapes that `auto` computes natively, beside cuBLAS with the same
// workspace: graphs of up to 100 calls, turns in both orders. Ends with status 1 if one is slower than 0.97
// of cuBLAS, or their geometric mean than 0.995.
//   build/tests/device_native_rate --random COUNT [--seed S] [--json FILE]
#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "arith/complex.hpp"
#include "base/settings.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

struct Shape {
  std::int64_t m, n, k;
};

// C = A B + beta C in BLAS's terms, all matrices column-major and without padding.
struct Case {
  ElementType type;
  Shape shape;
  bool transpose_a, transpose_b;
  double beta;

  std::string text() const {
    constexpr const char* names[] = {"FP32", "FP64", "complex FP32", "complex FP64"};
    return fmt::format("{} {} x {} x {} {}{} beta {}", names[static_cast<int>(type)], shape.m, shape.n,
                       shape.k, transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', beta);
  }
  double operations() const {
    const bool is_complex = type == ElementType::c32 || type == ElementType::c64;
    return (is_complex ? 8.0 : 2.0) * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
           static_cast<double>(shape.k);
  }
};

class Matrices {
 public:
  explicit Matrices(std::int64_t elements)
      : a_(16 * elements), b_(16 * elements), c_(16 * elements), scratch_(scratch_bytes) {}

  static constexpr std::size_t scratch_bytes = std::size_t{32} << 20;

  DeviceTile tile(const Case& test) const {
    const auto& [m, n, k] = test.shape;
    DeviceTile tile;
    tile.a.matrix = {.data = a_.data(),
                     .type = test.type,
                     .rows = m,
                     .columns = k,
                     .row_stride = test.transpose_a ? k : 1,
                     .column_stride = test.transpose_a ? 1 : m};
    tile.b.matrix = {.data = b_.data(),
                     .type = test.type,
                     .rows = n,
                     .columns = k,
                     .row_stride = test.transpose_b ? 1 : k,
                     .column_stride = test.transpose_b ? n : 1,
                     .right = true};
    tile.c = {
        .data = c_.data(), .type = test.type, .rows = m, .columns = n, .row_stride = 1, .column_stride = m};
    tile.rows = m;
    tile.columns = n;
    tile.scalars.beta = test.beta;
    return tile;
  }
  void multiply_by_vendor(const Case& test, const Queue& queue = {}) const {
    const auto& [m, n, k] = test.shape;
    const DeviceBlasProduct product{.type = test.type,
                                    .op_a = test.transpose_a ? 1 : 0,
                                    .op_b = test.transpose_b ? 1 : 0,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .a = a_.data(),
                                    .b = b_.data(),
                                    .c = c_.data(),
                                    .lda = test.transpose_a ? k : m,
                                    .ldb = test.transpose_b ? n : k,
                                    .ldc = m,
                                    .scalars = {.alpha = 1, .beta = test.beta},
                                    .scratch_bytes = scratch_bytes};
    if (!core::cuda::multiply_by_vendor(queue, product, scratch_.data()))
      throw std::runtime_error("device_native_rate: cuBLAS refuses " + test.text());
  }

  // Puts a call of `plan` into the queue, with the same scratch as cuBLAS.
  void multiply_by_plan(const Plan& plan, const Case& test, const Queue& queue) const {
    core::Operands operands;
    operands.a = a_.data();
    operands.b = b_.data();
    operands.c = c_.data();
    operands.beta = test.beta;
    operands.workspace = scratch_.data();
    operands.workspace_size = scratch_bytes;
    operands.queue = queue;
    Report report;
    execute(plan, operands, report);
  }

  // True if the element of C agrees with the host's sum within the contract of its type. For beta = 0.
  template <class T>
  bool is_right(const Case& test, std::int64_t i, std::int64_t j) const {
    const auto& [m, n, k] = test.shape;
    const std::vector<T> c = read<T>(c_, i + j * m, 1, 1);
    const std::vector<T> a = read<T>(a_, test.transpose_a ? i * k : i, test.transpose_a ? 1 : m, k);
    const std::vector<T> b = read<T>(b_, test.transpose_b ? j : j * k, test.transpose_b ? n : 1, k);
    using Wide = std::complex<long double>;
    Wide sum = 0;
    long double magnitudes = 0;
    for (std::size_t p = 0; p < a.size(); ++p) {
      sum += Wide(a[p]) * Wide(b[p]);
      magnitudes += std::abs(Wide(a[p])) * std::abs(Wide(b[p]));
    }
    const bool is_single = test.type == ElementType::f32 || test.type == ElementType::c32;
    const long double unit = is_single ? 0x1p-24L : 0x1p-53L;
    return std::abs(Wide(c[0]) - sum) <= 3 * static_cast<long double>(k + 2) * unit * magnitudes;
  }

  // Fills A and B with numbers of the type.
  void fill(ElementType type, std::int64_t elements) const {
    const bool is_single = type == ElementType::f32 || type == ElementType::c32;
    const auto count = static_cast<std::size_t>(2 * elements);
    if (is_single) {
      Pattern<float>(1).fill(a_, count);
      Pattern<float>(2).fill(b_, count);
    } else {
      Pattern<double>(1).fill(a_, count);
      Pattern<double>(2).fill(b_, count);
    }
  }
  void poison() const { Pattern<double>(3).fill(c_, 1 << 20); }

 private:
  // `count` elements from `first`, `stride` apart.
  template <class T>
  static std::vector<T> read(const Memory& memory, std::int64_t first, std::int64_t stride,
                             std::int64_t count) {
    std::vector<T> all(static_cast<std::size_t>((count - 1) * stride + 1));
    core::cuda::copy_to_host({}, all.data(), memory.data() + first * static_cast<std::int64_t>(sizeof(T)),
                             all.size() * sizeof(T));
    core::cuda::synchronize(Queue{});
    std::vector<T> values;
    for (std::int64_t p = 0; p < count; ++p) values.push_back(all[static_cast<std::size_t>(p * stride)]);
    return values;
  }

  Memory a_, b_, c_, scratch_;
};

bool are_right(const Matrices& operands, const Case& test) {
  for (const auto& [i, j] : {std::pair{std::int64_t{0}, std::int64_t{0}},
                             {test.shape.m / 3, test.shape.n / 2},
                             {test.shape.m - 1, test.shape.n - 1}}) {
    const bool right = test.type == ElementType::f32   ? operands.is_right<float>(test, i, j)
                       : test.type == ElementType::f64 ? operands.is_right<double>(test, i, j)
                       : test.type == ElementType::c32 ? operands.is_right<std::complex<float>>(test, i, j)
                                                       : operands.is_right<std::complex<double>>(test, i, j);
    if (!right) return false;
  }
  return true;
}

nlohmann::json measure(const Matrices& operands, const Case& test) {
  const DeviceTile tile = operands.tile(test);
  if (test.beta == 0) {
    operands.poison();
    core::cuda::multiply_unsliced({}, tile);
    if (!are_right(operands, test))
      throw std::runtime_error("device_native_rate: wrong sums of " + test.text());
  }
  const int count = static_cast<int>(std::clamp(3e9 / test.operations(), 1.0, 20.0));
  const auto multiply_by_vendor = [&](int) { operands.multiply_by_vendor(test); };
  const double first_vendor_time = seconds(count, multiply_by_vendor, 5);
  const double kernel_time = seconds(
      count, [&](int) { core::cuda::multiply_unsliced({}, tile); }, 5);
  const double vendor_time = (first_vendor_time + seconds(count, multiply_by_vendor, 5)) / 2;
  fmt::print("{:42} cuBLAS {:10.1f} us {:6.1f} TFLOP/s; speed of Kintsugi's kernel {:6.3f} of that\n",
             test.text(), 1e6 * vendor_time, 1e-12 * test.operations() / vendor_time,
             vendor_time / kernel_time);
  std::fflush(stdout);
  return {
      {"case", test.text()},           {"m", test.shape.m},         {"n", test.shape.n}, {"k", test.shape.k},
      {"vendor_seconds", vendor_time}, {"own_seconds", kernel_time}};
}

// A random shape: m, n and k from 16 to 10^6 by uniform logarithms, with at most max_elements in all
// matrices.
Shape random_shape(std::mt19937_64& random, double max_elements) {
  std::uniform_real_distribution<double> logarithm(std::log(16.0), std::log(1e6));
  for (;;) {
    const double m = std::floor(std::exp(logarithm(random)));
    const double n = std::floor(std::exp(logarithm(random)));
    const double k = std::floor(std::exp(logarithm(random)));
    if (m * k + k * n + m * n <= max_elements)
      return {static_cast<std::int64_t>(m), static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)};
  }
}

Plan plan_of(const Case& test) {
  Problem problem{.m = test.shape.m,
                  .n = test.shape.n,
                  .k = test.shape.k,
                  .lda = test.transpose_a ? test.shape.k : test.shape.m,
                  .ldb = test.transpose_b ? test.shape.n : test.shape.k,
                  .ldc = test.shape.m};
  problem.op_a = test.transpose_a ? Op::transpose : Op::none;
  problem.op_b = test.transpose_b ? Op::transpose : Op::none;
  problem.type = test.type == ElementType::f32 ? OperandType::f32 : OperandType::f64;
  problem.memory = MemorySpace::device;
  return make_plan(problem, Settings({}, {}, environment_settings(), file_settings()), {});
}

// Speed of a call under `auto`, relative to cuBLAS: medians over turns in both orders.
nlohmann::json measure_call(const Matrices& operands, const Case& test, const Plan& plan) {
  const auto vendor = [&](const Queue& queue, int) { operands.multiply_by_vendor(test, queue); };
  const auto own = [&](const Queue& queue, int) { operands.multiply_by_plan(plan, test, queue); };
  constexpr double rate = 20e12;  // operations per second, for a guess of the time
  const double guess = 5e-6 + test.operations() / rate;
  const int count = static_cast<int>(std::clamp(0.01 / guess, 2.0, 100.0));
  operands.poison();
  operands.multiply_by_plan(plan, test, {});
  if (!are_right(operands, test))
    throw std::runtime_error("device_native_rate: wrong sums of " + test.text());
  std::vector<double> vendor_times, own_times;
  for (int turn = 0; turn < 5; ++turn) {
    const bool own_begins = turn % 2 == 0;
    if (own_begins) own_times.push_back(seconds_in_graph(count, guess, own));
    vendor_times.push_back(seconds_in_graph(count, guess, vendor));
    if (!own_begins) own_times.push_back(seconds_in_graph(count, guess, own));
  }
  const double vendor_time = median(vendor_times);
  const double own_time = median(own_times);
  fmt::print("{:42} cuBLAS {:10.2f} us, call {:10.2f} us: {:.3f}\n", test.text(), 1e6 * vendor_time,
             1e6 * own_time, vendor_time / own_time);
  std::fflush(stdout);
  return {{"case", test.text()},
          {"calls_in_graph", count},
          {"vendor_seconds", vendor_time},
          {"call_seconds", own_time},
          {"speed", vendor_time / own_time}};
}

int run_random(const char* file, int count, std::uint64_t seed) {
  constexpr double least_speed = 0.97;
  constexpr double least_mean = 0.995;
  constexpr double max_elements = 1e9;
  const Matrices operands(static_cast<std::int64_t>(max_elements) / 2);  // of 16 bytes: FP64 matrices fit
  std::mt19937_64 random(seed);
  nlohmann::json rows = nlohmann::json::array();
  double logarithms = 0;
  double least = INFINITY;
  int emulated = 0;
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    operands.fill(type, static_cast<std::int64_t>(max_elements) / 2);
    for (int i = 0; i < count / 2; ++i) {
      const Case test{type, random_shape(random, max_elements), random() % 2 == 0, random() % 2 == 0, 0};
      const Plan plan = plan_of(test);
      if (!plan.is_native()) {
        ++emulated;
        continue;
      }
      rows.push_back(measure_call(operands, test, plan));
      const double speed = rows.back()["speed"];
      least = std::min(least, speed);
      logarithms += std::log(speed);
      write_json(file, rows);
    }
  }
  const double mean = std::exp(logarithms / static_cast<double>(rows.size()));
  fmt::print("{} native calls ({} shapes are emulated): least {:.3f}, geometric mean {:.4f} of cuBLAS\n",
             rows.size(), emulated, least, mean);
  return least >= least_speed && mean >= least_mean ? 0 : 1;
}

int run(const char* file, bool quick) {
  constexpr std::int64_t max_n = 8192;
  const Matrices operands(max_n * max_n);
  nlohmann::json rows = nlohmann::json::array();
  const auto add = [&](const Case& test) { rows.push_back(measure(operands, test)); };
  constexpr ElementType types[] = {ElementType::f32, ElementType::f64, ElementType::c32, ElementType::c64};
  for (const ElementType type : types) {
    operands.fill(type, max_n * max_n);
    for (const std::int64_t n : {64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192}) {
      if (quick && n > 2048) continue;
      add({type, {n, n, n}, false, false, 0});
      if (n >= 512) add({type, {n, n, n}, true, false, 0});
      if (n == 1024 || n == 4096) {
        add({type, {n, n, n}, false, true, 0});
        add({type, {n, n, n}, true, true, 0});
      }
    }
    for (const Shape shape : {Shape{8192, 8192, 128},
                              {4096, 4096, 512},
                              {8192, 256, 256},
                              {64, 64, 8192},
                              {512, 512, 8192},
                              {1000, 1111, 777}}) {
      add({type, shape, false, false, 0});
      add({type, shape, false, false, 1});
    }
  }
  write_json(file, rows);
  return 0;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** arguments) {
  const char* file = nullptr;
  bool quick = false;
  int random_count = 0;
  std::uint64_t seed = 1;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--quick") == 0) {
      quick = true;
    } else if (std::strcmp(arguments[i], "--json") == 0 && i + 1 < count) {
      file = arguments[++i];
    } else if (std::strcmp(arguments[i], "--random") == 0 && i + 1 < count) {
      random_count = std::atoi(arguments[++i]);
    } else if (std::strcmp(arguments[i], "--seed") == 0 && i + 1 < count) {
      seed = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      std::cerr << "usage: device_native_rate [--json FILE] [--quick | --random COUNT [--seed S]]\n";
      return 2;
    }
  }
  try {
    return kintsugi::core::run_on_device("device_native_rate", [&] {
      return random_count > 0 ? kintsugi::core::run_random(file, random_count, seed)
                              : kintsugi::core::run(file, quick);
    });
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
