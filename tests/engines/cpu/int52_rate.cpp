// Not a test: rates of products of 52-bit words on this machine, for lab/results/log.
//   build/tests/int52_rate [m = n = k] [threads] [rounds]
// Products alone per second of processor time; then whole calls of scheme int52 and of the native DGEMM, one
// after the other, per second of the clock and of processor time: best of all rounds, so that a busy machine
// counts less. The result is checked before anything is timed.
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "kintsugi/kintsugi.h"
#include "tests/support/processor_time.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/generators/random.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::core {
namespace {

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Best of all measurements.
struct Rates {
  double by_clock = 0;
  double by_processor_time = 0;

  template <class Work>
  void measure(double operations, const Work& work) {
    const double clock = clock_seconds();
    const double processor = processor_seconds();
    work();
    by_processor_time = std::max(by_processor_time, operations / (processor_seconds() - processor) * 1e-9);
    by_clock = std::max(by_clock, operations / (clock_seconds() - clock) * 1e-9);
  }
};

// VPMADD52 on registers alone, 16 independent sums; two instructions a product.
__attribute__((target("avx512f"))) void register_resident(long rounds) {
  __m512i sums[16] = {};
  const __m512i factor = _mm512_set1_epi64(3);
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (__m512i& sum : sums) asm volatile("vpmadd52luq %1, %1, %0" : "+v"(sum) : "v"(factor));
  }
}

double operations(std::int64_t size) {
  return 2.0 * static_cast<double>(size) * static_cast<double>(size * size);
}

// Prints the rate of a family of kernels without split and recombination, on words that use all bits.
void print_products(const Int52Kernels& kernels, std::int64_t size, int threads, int rounds) {
  const Schedule schedule = make_schedule(single_product);
  Slices slices = make_slices(int52, SliceStorage::packed, 1, size, size);
  std::vector<std::byte> memory(slices.bytes()), sums_memory;
  slices.data = memory.data();
  for (std::size_t e = 0; e < memory.size() / sizeof(std::int64_t); ++e) {
    reinterpret_cast<std::int64_t*>(memory.data())[e] = static_cast<std::int64_t>(measure::mix_bits(e)) >> 12;
  }
  Accumulators sums = make_accumulators(SumType::i128, size, size, 1);
  sums_memory.resize(sums.bytes());
  sums.data = sums_memory.data();
  std::vector<std::byte> scratch(static_cast<std::size_t>(threads) * int52_worker_bytes(kernels));
  const Multiplication task{&schedule, slices, slices, sums, Accumulator::int128, scratch.data(), threads};
  Rates rates;
  for (int round = 0; round < rounds; ++round) {
    rates.measure(operations(size), [&] { multiply_int52(task, kernels); });
  }
  fmt::print("int52 {}, products alone, n = {}: {:.1f} Gop/s\n", kernels.name, size, rates.by_processor_time);
}

// Calls the library for square matrices.
class Calls {
 public:
  Calls(std::int64_t size, int threads)
      : size_(size), threads_(threads), a_(static_cast<std::size_t>(size * size)), b_(a_.size()),
        c_(a_.size()) {
    measure::fill(measure::parse_distribution("phi:0.5"), measure::Side::a, 1, view(a_));
    measure::fill(measure::parse_distribution("phi:0.5"), measure::Side::b, 1, view(b_));
  }

  void run(const char* scheme) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = size_;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
    problem.batch_count = 1;
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.engine = "cpu";
    options.threads = threads_;
    (scheme == nullptr ? options.policy : options.scheme) = scheme == nullptr ? "native" : scheme;
    const double one = 1, zero = 0;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &one;
    operands.beta = &zero;
    operands.a = a_.data();
    operands.b = b_.data();
    operands.c = c_.data();
    if (kintsugi_gemm(nullptr, &problem, &options, &operands) != KINTSUGI_SUCCESS) {
      fmt::print(stderr, "{}\n", kintsugi_last_error());
      std::exit(1);
    }
  }

  // Checks a sample of the last result's elements.
  double componentwise_error() {
    const auto constant = [](const MatrixView<double>& m) {
      return MatrixView<const double>{m.data, m.rows, m.columns, m.row_stride, m.column_stride};
    };
    const measure::CheckOptions options{.work_limit = 0, .max_elements = 400, .threads = threads_};
    const measure::Product<double> product{constant(view(a_)), constant(view(b_))};
    return measure::measure_errors<double>(product, constant(view(c_)), {}, options).max_componentwise;
  }

 private:
  MatrixView<double> view(std::vector<double>& m) const { return {m.data(), size_, size_, 1, size_}; }

  std::int64_t size_;
  int threads_;
  std::vector<double> a_, b_, c_;
};

void print_calls(std::int64_t size, int threads, int rounds) {
  Calls calls(size, threads);
  for (const char* scheme : {static_cast<const char*>(nullptr), "int52"}) {
    calls.run(scheme);
    fmt::print("{}: max componentwise error {:.2e}\n", scheme == nullptr ? "native" : scheme,
               calls.componentwise_error());
  }
  Rates words, native;
  for (int round = 0; round < rounds; ++round) {
    native.measure(operations(size), [&] { calls.run(nullptr); });
    words.measure(operations(size), [&] { calls.run("int52"); });
  }
  const auto print = [&](const char* clock, double words_rate, double native_rate) {
    fmt::print("n = {}, threads = {}, {}: int52 {:.1f} GFLOP/s, native {:.1f} GFLOP/s, ratio {:.3f}\n", size,
               threads, clock, words_rate, native_rate, words_rate / native_rate);
  };
  print("clock", words.by_clock, native.by_clock);
  print("processor time", words.by_processor_time, native.by_processor_time);
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  using namespace kintsugi::core;
  const std::int64_t size = count > 1 ? std::atol(words[1]) : 2048;
  const int threads = count > 2 ? std::atoi(words[2]) : 1;
  const int rounds = count > 3 ? std::atoi(words[3]) : 5;
  if (__builtin_cpu_supports("avx512ifma")) {
    constexpr long turns = 20'000'000;
    Rates rates;
    rates.measure(8.0 * 16 * turns, [] { register_resident(turns); });
    fmt::print("VPMADD52 on registers: {:.1f} Gop/s\n", rates.by_processor_time);
  }
  print_products(*int52_families().front(), size, threads, rounds);
  print_products(int52_generic, 512, threads, rounds);
  print_calls(size, threads, rounds);
}
