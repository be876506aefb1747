#include "lab/analyse/mixpert.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tools/measure/generators/generators.hpp"
#include "tools/plan.hpp"

namespace kintsugi::tools {

namespace {

// One product of uniformly distributed matrices by a scheme on the engine cpu. C is square, A is row-major,
// and B is column-major. The elements of B are 2^-shift times as large as those of A.
class CpuProduct {
 public:
  CpuProduct(const std::string& scheme, std::int64_t rows, std::int64_t length, std::uint64_t seed,
             int shift = 0)
      : rows_(rows), length_(length), a_(elements(measure::Side::a, seed, 0)),
        b_(elements(measure::Side::b, seed, -shift)), c_(static_cast<std::size_t>(rows * rows)) {
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.scheme = scheme.c_str();
    options.engine = "cpu";
    options.threads = 1;
    const kintsugi_problem problem = this->problem();
    kintsugi_plan plan = nullptr;
    require(scheme, kintsugi_plan_create(nullptr, &problem, &options, &plan));
    plan_.reset(plan);
  }

  // Prepares both operands, so that later runs do not split them.
  void prepare() {
    prepared_a_ = make_prepared(KINTSUGI_A, a_);
    prepared_b_ = make_prepared(KINTSUGI_B, b_);
  }

  void run() {
    const float one = 1;
    const float zero = 0;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &one;
    operands.beta = &zero;
    operands.a = a_.data();
    operands.b = b_.data();
    operands.c = c_.data();
    operands.prepared_a = prepared_a_.get();
    operands.prepared_b = prepared_b_.get();
    require("analyse", kintsugi_plan_execute(nullptr, plan_.get(), &operands));
  }

  // Returns the median time of three runs. A run before them warms the caches.
  double seconds() {
    run();
    std::vector<double> times(3);
    for (double& time : times) {
      const auto start = std::chrono::steady_clock::now();
      run();
      time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    std::sort(times.begin(), times.end());
    return times[1];
  }

  // Returns the relative Frobenius error of C against sums in double.
  double frobenius_error() {
    run();
    double errors = 0;
    double exact = 0;
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < rows_; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < length_; ++p)
          sum += static_cast<double>(a_[i * length_ + p]) * static_cast<double>(b_[j * length_ + p]);
        const double error = static_cast<double>(c_[i + j * rows_]) - sum;
        errors += error * error;
        exact += sum * sum;
      }
    }
    return std::sqrt(errors / exact);
  }

 private:
  std::vector<float> elements(measure::Side side, std::uint64_t seed, int exponent) const {
    std::vector<float> all(static_cast<std::size_t>(rows_ * length_));
    const core::MatrixView<float> vectors{all.data(), rows_, length_, length_, 1};
    measure::fill(measure::parse_distribution("uniform"), side, seed,
                  side == measure::Side::a ? vectors : vectors.transposed());
    for (float& x : all) x = std::ldexp(x, exponent);
    return all;
  }

  kintsugi_problem problem() const {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = problem.n = problem.ldc = rows_;
    problem.k = problem.lda = problem.ldb = length_;
    problem.op_a = KINTSUGI_OP_T;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F32;
    return problem;
  }

  Prepared make_prepared(kintsugi_side side, const std::vector<float>& data) const {
    kintsugi_prepared prepared = nullptr;
    require("analyse", kintsugi_prepare(nullptr, plan_.get(), side, data.data(), &prepared));
    return Prepared(prepared);
  }

  std::int64_t rows_;
  std::int64_t length_;
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
  Plan plan_;
  Prepared prepared_a_;
  Prepared prepared_b_;
};

constexpr std::uint64_t timing_seed = 1;

double unprepared_seconds(const std::string& scheme, std::int64_t size) {
  return CpuProduct(scheme, size, size, timing_seed).seconds();
}

PairError measure_pair(int shift, std::uint64_t seed) {
  constexpr std::int64_t rows = 64;
  constexpr std::int64_t length = 512;
  return {shift, CpuProduct("mixpert-4", rows, length, seed, shift).frobenius_error(),
          CpuProduct("mixpert-4:exponent=pair", rows, length, seed, shift).frobenius_error()};
}

}  // namespace

double prepared_seconds(const std::string& scheme, std::int64_t size) {
  CpuProduct product(scheme, size, size, timing_seed);
  product.prepare();
  return product.seconds();
}

Overhead measure_overhead(std::int64_t size) {
  const double total = unprepared_seconds("mixpert-4", size);
  const double prepared = prepared_seconds("mixpert-4", size);
  const double prepared_deep_tiles = prepared_seconds("mixpert-4:tile=256", size);
  return {.size = size,
          .total = total,
          .packing = std::max(total - prepared, 0.0),
          .conversion = std::max((prepared - prepared_deep_tiles) * 8 / 7, 0.0)};
}

MixpertAnalysis analyse_mixpert(const AnalyseRequest& request) {
  MixpertAnalysis analysis;
  analysis.enumerated = lab::enumerate_segment_products();
  analysis.nearest =
      lab::simulate_segment_products(request.samples, request.seed, lab::SegmentRounding::nearest);
  analysis.towards_zero =
      lab::simulate_segment_products(request.samples, request.seed, lab::SegmentRounding::towards_zero);
  for (const int binades : {0, 2, 5, 8, 10, 12, 16, 20, 24})
    analysis.ranges.push_back(lab::measure_tile_ranges(binades, request.tiles, request.seed));
  for (const int shift : {0, 4, 8, 12, 16, 20, 24})
    analysis.pairs.push_back(measure_pair(shift, request.seed));
  for (const std::int64_t size : request.sizes) analysis.overheads.push_back(measure_overhead(size));
  return analysis;
}

}  // namespace kintsugi::tools
