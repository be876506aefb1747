// Not a test: measures the steps of a call on this machine, for StepCosts and NativeCosts
// (engines/engine.hpp), and compares what expected_times() makes of them with whole calls.
//   build/tests/step_rate [threads]
// Times are the quickest of several, in processor time of all threads, so that a busy machine counts less.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "engines/registry.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/candidates.hpp"
#include "planner/expected_times.hpp"
#include "planner/plan.hpp"
#include "recombine/recombine.hpp"
#include "split/ranges.hpp"
#include "split/split.hpp"
#include "tests/support/processor_time.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

template <class Work>
double quickest(const Work& work) {
  double best = INFINITY;
  double spent = 0;
  for (int run = 0; run < 3 || (run < 200 && spent < 0.2); ++run) {
    const double start = processor_seconds();
    work();
    const double time = processor_seconds() - start;
    best = std::min(best, time);
    spent += time;
  }
  return best;
}

struct Shape {
  std::int64_t m, n, k;
};

template <class T>
std::vector<T> matrix(std::int64_t rows, std::int64_t columns, measure::Side side) {
  std::vector<T> values(static_cast<std::size_t>(rows * columns));
  measure::fill(measure::parse_distribution("phi:0.5"), side, 3,
                MatrixView<T>{values.data(), rows, columns, 1, rows});
  return values;
}

// C = A B, column-major and dense, by every method that is timed.
template <class T>
class Case {
 public:
  Case(const Shape& shape, int threads)
      : shape_(shape), threads_(threads), a_(matrix<T>(shape.m, shape.k, measure::Side::a)),
        b_(matrix<T>(shape.k, shape.n, measure::Side::b)), c_(static_cast<std::size_t>(shape.m * shape.n)) {}

  double products() const { return static_cast<double>(shape_.m * shape_.n) * static_cast<double>(shape_.k); }

  double native() {
    return quickest([&] { call("native", nullptr); });
  }
  double scheme(const char* name) {
    return quickest([&] { call(nullptr, name); });
  }

  // Prints the nanoseconds of an element's range, of an element's slice and of a sum's recombination, and the
  // time of a product of slices in native ones.
  void print_steps(const char* name, double native_product) {
    const Program program = fitted_program(*find_scheme(name), type, shape_.k);
    const StepTimes times = time_steps(program);
    const auto elements = static_cast<double>((shape_.m + shape_.n) * shape_.k);
    const auto results = static_cast<double>(shape_.m * shape_.n);
    const auto terms = static_cast<double>(program.schedule.terms.size());
    const double split = 1e9 * times.split / elements;
    const double recombination = 1e9 * times.recombination / results;
    fmt::print(
        "{:<16} {:>5}x{}x{}: range {:.2f} ns, split {:.2f} ns = {} slices x {:.2f}, recombination {:.2f} ns "
        "= {} x {:.2f}; product {:.3f} native\n",
        name, shape_.m, shape_.n, shape_.k, 1e9 * times.ranges / elements, split, program.split_a.slices,
        split / program.split_a.slices, recombination, program.schedule.sums(),
        recombination / program.schedule.sums(), times.product / (terms * products()) / native_product);
  }

  // Prints how a scheme compares with native as the model expects it, and as it is measured.
  void print_call(const char* name) {
    Problem problem;
    problem.type = type;
    problem.m = shape_.m;
    problem.n = shape_.n;
    problem.k = shape_.k;
    const ExpectedTimes times =
        expected_times(*find_engine("cpu"), fitted_program(*find_scheme(name), problem), problem, {});
    const double expected = times.native / times.emulated;
    const double measured = native() / scheme(name);
    fmt::print("{:<16} {:>5}x{}x{} {}: {:.3f} of native expected, {:.3f} measured, {:+.0f} %\n", name,
               shape_.m, shape_.n, shape_.k, type == OperandType::f64 ? "fp64" : "fp32", expected, measured,
               100 * (expected / measured - 1));
  }

 private:
  static constexpr OperandType type = std::is_same_v<T, float> ? OperandType::f32 : OperandType::f64;

  struct StepTimes {
    double ranges = 0, split = 0, product = 0, recombination = 0;  // seconds
  };

  StepTimes time_steps(const Program& program) {
    const Engine& engine = *find_engine("cpu");
    StepTimes times;
    std::vector<VectorRange> rows(static_cast<std::size_t>(shape_.m)),
        columns(static_cast<std::size_t>(shape_.n));
    const MatrixView<const T> a{a_.data(), shape_.m, shape_.k, 1, shape_.m};
    const MatrixView<const T> b{b_.data(), shape_.n, shape_.k, shape_.k, 1};
    times.ranges = quickest([&] {
      find_ranges(a, program.split_a, std::span(rows), threads_);
      find_ranges(b, program.split_b, std::span(columns), threads_);
    });
    HostBuffer memory_a, memory_b;  // aligned, as a workspace is
    const Slices slices_a = take(program.split_a, engine, shape_.m, memory_a);
    const Slices slices_b = take(program.split_b, engine, shape_.n, memory_b);
    times.split = quickest([&] {
      split_operand(a, program.split_a, rows, slices_a, threads_);
      split_operand(b, program.split_b, columns, slices_b, threads_);
    });
    Accumulators sums = make_accumulators(program.sum_type(engine.reduces_sums_modulo()), shape_.m, shape_.n,
                                          program.schedule.sums());
    const HostBuffer sums_memory(Allocator{}, sums.bytes());
    sums.data = static_cast<std::byte*>(sums_memory.pointer());
    const HostBuffer scratch(
        Allocator{}, engine.host()->scratch_bytes(program.schedule, program.format().id, shape_.k, threads_));
    const Accumulator accumulator = engine.accumulators(program.format().id).front();
    times.product = quickest([&] {
      engine.host()->multiply({&program.schedule, slices_a, slices_b, sums, accumulator,
                               static_cast<std::byte*>(scratch.pointer()), threads_});
    });
    const MatrixView<T> c{c_.data(), shape_.m, shape_.n, 1, shape_.m};
    times.recombination = quickest([&] { recombine_sums(program, sums, rows, columns, c); });
    return times;
  }

  Slices take(const SplitRule& rule, const Engine& engine, std::int64_t vectors, HostBuffer& memory) const {
    Slices slices =
        make_slices(*rule.format, engine.slice_storage(rule.format->id), rule.slices, vectors, shape_.k);
    memory = HostBuffer(Allocator{}, slices.bytes());
    slices.data = static_cast<std::byte*>(memory.pointer());
    return slices;
  }

  void recombine_sums(const Program& program, const Accumulators& sums, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, const MatrixView<T>& c) const {
    if (program.recombination == Recombination::residues)
      return recombine_residues(sums, program.residue_system(), rows, columns, T(1), T(0), c, threads_);
    std::array<int, max_groups> exponents{};
    for (int g = 0; g < program.schedule.sums(); ++g) exponents[g] = program.schedule.sum_exponent(g);
    recombine_weighted(sums, exponents, rows, columns, T(1), T(0), c, threads_);
  }

  void call(const char* policy, const char* scheme) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = shape_.m;
    problem.n = shape_.n;
    problem.k = shape_.k;
    problem.lda = problem.ldc = shape_.m;
    problem.ldb = shape_.k;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar =
        type == OperandType::f32 ? KINTSUGI_F32 : KINTSUGI_F64;
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.policy = policy;
    options.scheme = scheme;
    options.engine = "cpu";
    options.threads = threads_;
    const T alpha = 1, beta = 0;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha;
    operands.beta = &beta;
    operands.a = a_.data();
    operands.b = b_.data();
    operands.c = c_.data();
    if (kintsugi_gemm(nullptr, &problem, &options, &operands) != KINTSUGI_SUCCESS) {
      fmt::print("{}\n", kintsugi_last_error());
      std::exit(1);
    }
  }

  Shape shape_;
  int threads_;
  std::vector<T> a_, b_, c_;
};

constexpr const char* fp32_schemes[] = {"fp16x3", "bf16x6", "quantensor", "int8x6", "ozaki2:moduli=9"};
constexpr const char* fp64_schemes[] = {"ozaki2", "ozaki-int8", "int52"};

void print_native(int threads) {
  for (const Shape& shape : {Shape{16, 16, 16}, Shape{1024, 1, 1024}, Shape{2048, 8, 2048},
                             Shape{2048, 2048, 8}, Shape{256, 256, 256}, Shape{1024, 1024, 1024}}) {
    Case<float> single(shape, threads);
    Case<double> twice(shape, threads);
    fmt::print("native {}x{}x{}: {:.4f} ns a product in fp32, {:.4f} in fp64\n", shape.m, shape.n, shape.k,
               1e9 * single.native() / single.products(), 1e9 * twice.native() / twice.products());
  }
}

void print_all(int threads) {
  print_native(threads);
  Case<float> single({1024, 1024, 1024}, threads);
  Case<double> twice({1024, 1024, 1024}, threads);
  const double native_product = single.native() / single.products();
  for (const char* name : fp32_schemes) single.print_steps(name, native_product);
  for (const char* name : fp64_schemes) twice.print_steps(name, native_product);
  for (const Shape& shape :
       {Shape{256, 256, 256}, Shape{512, 512, 512}, Shape{1024, 1024, 1024}, Shape{2048, 2048, 2048},
        Shape{2048, 64, 2048}, Shape{64, 2048, 1024}, Shape{1024, 1024, 32}, Shape{100, 100, 8000}}) {
    for (const char* name : fp32_schemes) Case<float>(shape, threads).print_call(name);
    for (const char* name : fp64_schemes) Case<double>(shape, threads).print_call(name);
  }
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) { kintsugi::core::print_all(count > 1 ? std::atoi(words[1]) : 1); }
