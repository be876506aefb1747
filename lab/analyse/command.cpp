// kintsugi-lab analyse: enumerates, simulates and measures the arithmetic of a paper.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "lab/analyse/mixpert.hpp"
#include "lab/commands.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/plan.hpp"
#include "tools/program.hpp"

namespace kintsugi::tools {

namespace {

// ------------------------------------------------------------ measurements

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

}  // namespace

double prepared_seconds(const std::string& scheme, std::int64_t size) {
  CpuProduct product(scheme, size, size, timing_seed);
  product.prepare();
  return product.seconds();
}

Overhead measure_overhead(std::int64_t size) {
  const double total = CpuProduct("mixpert-4", size, size, timing_seed).seconds();
  const double prepared = prepared_seconds("mixpert-4", size);
  const double prepared_deep_tiles = prepared_seconds("mixpert-4:tile=256", size);
  return {.total = total,
          .packing = std::clamp(total - prepared, 0.0, total),
          .conversion = std::clamp((prepared - prepared_deep_tiles) * 8 / 7, 0.0, total)};
}

namespace {

struct AnalyseRequest {
  std::int64_t samples = 1'000'000;  // random products of two numbers
  std::int64_t tiles = 50;           // random products of two tiles for each range
  std::uint64_t seed = 1;
  std::vector<std::int64_t> sizes{256, 512, 1024};
  bool json = false;
};

Json simulated(const AnalyseRequest& request, lab::SegmentRounding rounding) {
  const auto errors = lab::simulate_segment_products(request.samples, request.seed, rounding);
  return {{"mean", number(errors.mean)}, {"largest", number(errors.largest)}};
}

Json ranges_of(const AnalyseRequest& request) {
  Json rows = Json::array();
  for (const int binades : {0, 2, 5, 8, 10, 12, 16, 20, 24}) {
    const lab::RangeErrors errors = lab::measure_tile_ranges(binades, request.tiles, request.seed);
    rows.push_back({{"binades", binades},
                    {"delta", number(errors.delta)},
                    {"failing", number(errors.failing)},
                    {"beyond_32", number(errors.beyond_32)},
                    {"segments", number(errors.segments)},
                    {"componentwise", number(errors.componentwise)},
                    {"native", number(errors.native)}});
  }
  return rows;
}

// Returns Frobenius errors of mixpert-4 with both rules for a tile's exponent. B is 2^-shift times as large
// as A.
Json pairs_of(const AnalyseRequest& request) {
  const auto error = [&](const char* scheme, int shift) {
    return number(CpuProduct(scheme, 64, 512, request.seed, shift).frobenius_error());
  };
  Json rows = Json::array();
  for (const int shift : {0, 4, 8, 12, 16, 20, 24})
    rows.push_back({{"shift", shift},
                    {"operand", error("mixpert-4", shift)},
                    {"pair", error("mixpert-4:exponent=pair", shift)}});
  return rows;
}

Json overheads_of(const AnalyseRequest& request) {
  Json rows = Json::array();
  for (const std::int64_t size : request.sizes) {
    const Overhead overhead = measure_overhead(size);
    rows.push_back({{"size", size},
                    {"seconds", number(overhead.total)},
                    {"packing", number(overhead.packing / overhead.total)},
                    {"conversion", number(overhead.conversion / overhead.total)}});
  }
  return rows;
}

Json analyse_mixpert(const AnalyseRequest& request) {
  const lab::EnumeratedErrors enumerated = lab::enumerate_segment_products();
  Json result = document("analysis");
  result["subject"] = "mixpert";
  result["samples"] = request.samples;
  result["tiles"] = request.tiles;
  result["seed"] = request.seed;
  result["products"] = {{"expectation", number(enumerated.expectation)},
                        {"worst", number(enumerated.worst)},
                        {"worst_nearest", number(enumerated.worst_nearest)},
                        {"simulated_nearest", simulated(request, lab::SegmentRounding::nearest)},
                        {"simulated_towards_zero", simulated(request, lab::SegmentRounding::towards_zero)}};
  result["ranges"] = ranges_of(request);
  result["pairs"] = pairs_of(request);
  result["overheads"] = overheads_of(request);
  return result;
}

// ---------------------------------------------------------------- command

void print_products(const Json& products) {
  fmt::print("Relative error of a product of two numbers, level IV (Eqs. 5 and 6)\n\n");
  Table table({"", "mean", "largest"});
  const auto text = [](const Json& error) { return fmt::format("{:.3e}", read_number(error)); };
  table.add(
      {"enumerated, the paper's assumptions", text(products.at("expectation")), text(products.at("worst"))});
  table.add({"the tie that they leave out", "", text(products.at("worst_nearest"))});
  for (const auto& [name, member] : {std::pair{"simulated, rounded to nearest", "simulated_nearest"},
                                     std::pair{"simulated, rounded towards zero", "simulated_towards_zero"}})
    table.add({name, text(products.at(member).at("mean")), text(products.at(member).at("largest"))});
  fmt::print("{}\n", table.text());
}

struct Column {
  const char* head;
  const char* member;
  const char* format;
  double factor = 1;
};

void print_rows(const char* title, const std::vector<Column>& columns, const Json& rows) {
  if (rows.empty()) return;
  fmt::print("{}\n\n", title);
  std::vector<std::string> heads;
  for (const Column& column : columns) heads.emplace_back(column.head);
  Table table(heads);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const Column& column : columns)
      cells.push_back(
          fmt::format(fmt::runtime(column.format), column.factor * read_number(row.at(column.member))));
    table.add(cells);
  }
  fmt::print("{}\n", table.text());
}

void run_analyse(const AnalyseRequest& request) {
  require_settings();
  const Json analysis = analyse_mixpert(request);
  if (request.json) return print(analysis);
  print_products(analysis.at("products"));
  print_rows("Tiles of 16 x 32 and 32 x 8 by the range of their elements (Eq. 9, k = 32), by segments alone",
             {{"binades", "binades", "{:.0f}"},
              {"Eq. 9 in u", "delta", "{:.2f}"},
              {"fail Eq. 9", "failing", "{:.0f} %", 100},
              {"beyond 32:1", "beyond_32", "{:.0f} %", 100},
              {"error", "segments", "{:.2e}"},
              {"largest by |A||B|", "componentwise", "{:.2e}"},
              {"native FP32", "native", "{:.2e}"}},
             analysis.at("ranges"));
  print_rows("Frobenius error of mixpert-4 where B is 2^-s times as large as A, k = 512",
             {{"s", "shift", "{:.0f}"},
              {"exponent=operand", "operand", "{:.2e}"},
              {"exponent=pair", "pair", "{:.2e}"}},
             analysis.at("pairs"));
  print_rows("Time of mixpert-4 on the engine cpu, one thread",
             {{"n", "size", "{:.0f}"},
              {"seconds", "seconds", "{:.4g}"},
              {"packing", "packing", "{:.1f} %", 100},
              {"INT32 to FP32", "conversion", "{:.1f} %", 100}},
             analysis.at("overheads"));
}

constexpr const char* mixpert_footer =
    "Example:\n"
    "  kintsugi-lab analyse mixpert --samples 100000 --sizes 256,512\n"
    "\n"
    "Products: Eqs. 5 and 6 of the paper, by enumeration and by simulation. Ranges: Eq. 9 and the rule\n"
    "of 32:1, compared with measured errors. Pairs: errors with one exponent for both tiles, and with\n"
    "one for each. Overhead: packing is the time that prepared operands save; INT32 to FP32 is 8/7 of\n"
    "the time that tiles of 256 save.";

}  // namespace

void add_analyse(CLI::App& program, Action& action) {
  auto request = std::make_shared<AnalyseRequest>();
  CLI::App* command =
      program.add_subcommand("analyse", "Enumerate, simulate and measure the arithmetic of a paper");
  command->footer("Example:\n  kintsugi-lab analyse mixpert --samples 100000 --sizes 256,512");
  command->require_subcommand(1);
  CLI::App* mixpert =
      command->add_subcommand("mixpert", "int8 segments with one exponent per tile: errors and overhead");
  mixpert->footer(mixpert_footer);
  mixpert->add_option("--samples", request->samples, "Random products of two numbers")
      ->check(whole_number(1))
      ->capture_default_str();
  mixpert->add_option("--tiles", request->tiles, "Random products of two tiles for each range")
      ->check(whole_number(1))
      ->capture_default_str();
  mixpert->add_option("--seed", request->seed, "The same seed gives the same errors")
      ->check(whole_number(0))
      ->capture_default_str();
  mixpert
      ->add_option("--sizes", request->sizes,
                   "Sizes n of square products that are timed, separated by commas")
      ->delimiter(',')
      ->check(whole_number(1, 16384))
      ->capture_default_str();
  mixpert->add_flag("--json", request->json, "Print the results as JSON");
  mixpert->callback([request, &action] { action = [request] { run_analyse(*request); }; });
}

}  // namespace kintsugi::tools
