#include "accuracy/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gemm/check.hpp"
#include "io/matrix.hpp"
#include "lab/bound_check.hpp"
#include "lab/generators.hpp"

namespace kintsugi::tools {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Zeros; fails where they do not fit the machine's memory.
std::vector<float> make_entries(std::int64_t rows, std::int64_t columns) {
  return std::get<std::vector<float>>(
      make_matrix("--shapes", rows, columns, Type::float32, Order::row_major).values);
}

std::vector<float> generated(const CellKey& key, lab::Side side, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values = make_entries(rows, columns);
  try {
    lab::fill(lab::parse_distribution(key.distribution), side, key.seed,
              core::MatrixView<float>{values.data(), rows, columns, columns, 1});
  } catch (const std::runtime_error& error) {  // fp32 cannot hold what was asked for
    fail("--distributions", "{}", error.what());
  }
  return values;
}

kintsugi_problem problem_of(const Shape& shape) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.lda = shape.k;
  problem.ldb = problem.ldc = shape.n;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F32;
  problem.layout = KINTSUGI_ROW_MAJOR;
  return problem;
}

struct PlanDeleter {
  void operator()(kintsugi_plan plan) const { kintsugi_plan_destroy(plan); }
};
using Plan = std::unique_ptr<kintsugi_plan_s, PlanDeleter>;

Plan make_plan(kintsugi_handle handle, const kintsugi_problem& problem, const Method& method) {
  // What the row names is what runs, whatever the environment prefers.
  const HiddenVariables environment(
      {"KINTSUGI_SCHEME", "KINTSUGI_POLICY", "KINTSUGI_ACCURACY", "KINTSUGI_ENGINE", "KINTSUGI_ACCUMULATOR"});
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.engine = method.engine.c_str();
  if (method.scheme == "native") {
    options.policy = "native";
    options.accuracy = "fp32";
  } else {
    options.scheme = method.scheme.c_str();
    if (method.engine == "reference") options.accumulator = method.accumulator.c_str();
  }
  kintsugi_plan plan = nullptr;
  require(method.scheme, kintsugi_plan_create(handle, &problem, &options, &plan));
  return Plan(plan);
}

lab::SplitWindow window_of(const Json& split) {
  const std::string format = cell(split, "format");
  const std::string first = cell(split, "first_rounding");
  const std::string residual = cell(split, "residual_rounding");
  lab::SplitDescription description{format, split.at("slices").get<int>(), first, residual,
                                    split.at("residual_exponent").get<int>()};
  description.scale_vectors = split.at("scale_vectors").get<bool>();
  if (description.scale_vectors) description.top_exponent = split.at("top_exponent").get<int>();
  return lab::split_window(description);
}

Json time_document(double seconds, double plan_seconds) {
  return {{"seconds", seconds}, {"runs", 1}, {"plan_seconds", plan_seconds}};
}

// The native errors that rows are compared with; its own row has all of them.
Json baseline_errors(const lab::ErrorReport& errors) {
  const Json all = errors_document(errors);
  Json some;
  for (const char* key : {"frobenius_relative", "max_relative", "mean_relative", "max_componentwise",
                          "max_ulp", "correctly_rounded_fraction"}) {
    some[key] = all.at(key);
  }
  return some;
}

}  // namespace

Json row_key(const CellKey& cell, const Method& method) {
  return {{"problem", {{"m", cell.shape.m}, {"n", cell.shape.n}, {"k", cell.shape.k}}},
          {"distribution", cell.distribution},
          {"seed", cell.seed},
          {"scheme", method.scheme},
          {"engine", method.engine},
          {"accumulator", method.accumulator.empty() ? Json() : Json(method.accumulator)}};
}

void require_plan(const Method& method, const Shape& shape) {
  const Handle handle = make_handle();
  const kintsugi_problem problem = problem_of(shape);
  make_plan(handle.get(), problem, method);
}

AccuracyCell::AccuracyCell(const CellKey& key, std::int64_t max_entries)
    : key_(key), a_(generated(key, lab::Side::a, key.shape.m, key.shape.k)),
      b_(generated(key, lab::Side::b, key.shape.k, key.shape.n)) {
  lab::CheckOptions options;
  options.work_limit = 0;
  options.max_entries = max_entries;
  options.seed = sample_seed;
  lab::Product<float> product;
  product.a = view_a();
  product.b = view_b();
  exact_.emplace(product, key.shape.m, key.shape.n, options);
}

AccuracyCell::Result AccuracyCell::run(const Method& method) const {
  const Handle handle = make_handle();
  const kintsugi_problem problem = problem_of(key_.shape);
  Result result;
  const auto planning = std::chrono::steady_clock::now();
  const Plan plan = make_plan(handle.get(), problem, method);
  result.plan_seconds = seconds_since(planning);
  result.plan = read_description("plan", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_plan_describe(plan.get(), buffer, capacity, needed);
  });
  result.c = make_entries(key_.shape.m, key_.shape.n);
  const float one = 1;
  const float zero = 0;
  kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
  data.alpha = &one;
  data.a = a_.data();
  data.b = b_.data();
  data.beta = &zero;
  data.c = result.c.data();
  const auto start = std::chrono::steady_clock::now();
  require(method.scheme, kintsugi_plan_execute(handle.get(), plan.get(), &data));
  result.seconds = seconds_since(start);
  return result;
}

// The engine's native product, which the rows are compared with; null where it has none.
const AccuracyCell::Result* AccuracyCell::native(const std::string& engine) {
  const auto [found, is_new] = native_.try_emplace(engine);
  if (is_new) {
    try {
      Result result = run({"native", engine, ""});
      result.errors = exact_->measure(view_c(result.c), view_c(result.c), &result.entries);
      found->second = std::move(result);
    } catch (const LibraryError& error) {
      if (error.is_surprise()) throw;
    }
  }
  return found->second ? &*found->second : nullptr;
}

// The scheme's a-priori bound, and whether every checked entry keeps it; null for native.
Json AccuracyCell::bound_document(const Result& result) const {
  const Json& rung = result.plan.at("rungs").at(0);
  Json bound = rung.value("bound_in_window", Json());
  if (bound.is_null()) return bound;
  const lab::BoundCoefficients coefficients{bound.at("relative"), bound.at("floor_a"), bound.at("floor_b"),
                                            bound.at("floor_both")};
  const Json& program = rung.at("program");
  const auto a = lab::vector_norms(view_a(), window_of(program.at("split_a")));
  const auto b = lab::vector_norms(view_b().transposed(), window_of(program.at("split_b")));
  const bool in_window = a.in_window && b.in_window;
  double largest_ratio = 0;
  for (const auto& entry : result.entries) {
    const double ratio = std::fabs(entry.error) / lab::allowed_error(coefficients, entry, a, b);
    largest_ratio = std::isnan(ratio) ? HUGE_VAL : std::max(largest_ratio, ratio);
  }
  bound["in_window"] = in_window;
  bound["largest_ratio"] = in_window ? number(largest_ratio) : Json();
  bound["held"] = in_window ? Json(largest_ratio <= 1) : Json();
  return bound;
}

Json AccuracyCell::row(const Method& method) {
  const bool is_native = method.scheme == "native";
  const Result* baseline = native(method.engine);
  if (is_native && baseline == nullptr) fail("--schemes", "{} has no native product", method.engine);
  Result own;
  if (!is_native) {
    own = run(method);
    own.errors = exact_->measure(view_c(own.c),
                                 baseline != nullptr ? view_c(baseline->c) : core::MatrixView<const float>{},
                                 &own.entries);
  }
  const Result& result = is_native ? *baseline : own;
  Json row = row_key(key_, method);
  row["errors"] = errors_document(result.errors);
  row["bound"] = bound_document(result);
  row["time"] = time_document(result.seconds, result.plan_seconds);
  row["baseline"] = nullptr;
  if (!is_native && baseline != nullptr) {
    row["baseline"] = {{"scheme", "native"},
                       {"engine", method.engine},
                       {"errors", baseline_errors(baseline->errors)},
                       {"time", time_document(baseline->seconds, baseline->plan_seconds)}};
  }
  return row;
}

}  // namespace kintsugi::tools
