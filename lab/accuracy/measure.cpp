#include "lab/accuracy/measure.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "lab/numerics/histogram.hpp"
#include "lab/numerics/long_double_reference.hpp"
#include "tools/gemm/product.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/native_difference.hpp"
#include "tools/plan.hpp"

namespace kintsugi::tools {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns zeros; fails if they do not fit in the machine's memory.
template <class T>
std::vector<T> make_elements(std::int64_t rows, std::int64_t columns) {
  return std::get<std::vector<T>>(
      make_matrix("--shapes", rows, columns, type_of<T>, Order::row_major).values);
}

template <class T>
std::vector<T> generated(const SweepCase& sweep_case, measure::Side side, std::int64_t rows,
                         std::int64_t columns) {
  std::vector<T> values = make_elements<T>(rows, columns);
  try {
    measure::fill(measure::parse_distribution(sweep_case.distribution), side, sweep_case.seed,
                  core::MatrixView<T>{values.data(), rows, columns, columns, 1});
  } catch (const std::runtime_error& error) {  // the type cannot hold the distribution's values
    fail("--distributions", "{}", error.what());
  }
  return values;
}

// Returns the member "time" of a row: the time of the only execution, and the time to make its plan.
Json time_document(double seconds, double plan_seconds) {
  return {{"seconds", seconds}, {"runs", 1}, {"plan_seconds", plan_seconds}};
}

// Returns those errors of the native product that other rows repeat for comparison.
Json baseline_errors(const measure::ErrorReport& errors) {
  const Json all = errors_document(errors);
  Json repeated;
  for (const char* key : {"frobenius_relative", "max_relative", "mean_relative", "max_componentwise",
                          "max_ulp", "correctly_rounded_fraction"}) {
    repeated[key] = all.at(key);
  }
  return repeated;
}

// Returns the histogram of differences between compared elements of a product and of the native product.
Json histogram_document(const std::vector<measure::ElementError>& elements,
                        const std::vector<measure::ElementError>& native) {
  std::vector<double> differences;
  for (std::size_t e = 0; e < elements.size(); ++e)
    differences.push_back(measure::relative_difference(elements[e].computed, native[e].computed));
  const std::vector<double>& edges = lab::signed_logarithmic_edges();
  return {{"edges", edges}, {"counts", lab::histogram(differences, edges)}};
}

template <class T>
class TypedMatrices : public CaseMatrices {
 public:
  TypedMatrices(const SweepCase& sweep_case, const Sweep& sweep);
  Json measure(const Method& method) override;

 private:
  struct Result {
    std::vector<T> c;  // row-major (m,n)
    Json bounds;       // result of bounds_of()
    double plan_seconds = 0;
    double seconds = 0;
    measure::ErrorReport errors;
    std::vector<measure::ElementError> elements;
  };

  core::MatrixView<const T> view_a() const {
    return {a_.data(), case_.shape.m, case_.shape.k, case_.shape.k, 1};
  }
  core::MatrixView<const T> view_b() const {
    return {b_.data(), case_.shape.k, case_.shape.n, case_.shape.n, 1};
  }
  core::MatrixView<const T> view_c(const std::vector<T>& c) const {
    return {c.data(), case_.shape.m, case_.shape.n, case_.shape.n, 1};
  }
  Result run(const Method& method) const;
  void execute(kintsugi_handle handle, const Method& method, const Plan& plan, Result& result) const;
  const Result* native_result(const std::string& engine);
  Json errors_of(const Result& result);

  SweepCase case_;
  bool adds_histogram_;
  std::vector<T> a_;
  std::vector<T> b_;
  std::optional<measure::ExactReference<T>> exact_;
  std::vector<long double> long_double_sums_;  // sums of the compared elements, computed for the first row
  // Native products by engine; nullopt: the engine has none.
  std::map<std::string, std::optional<Result>> native_results_;
};

template <class T>
TypedMatrices<T>::TypedMatrices(const SweepCase& sweep_case, const Sweep& sweep)
    : case_(sweep_case), adds_histogram_(sweep.histogram),
      a_(generated<T>(sweep_case, measure::Side::a, sweep_case.shape.m, sweep_case.shape.k)),
      b_(generated<T>(sweep_case, measure::Side::b, sweep_case.shape.k, sweep_case.shape.n)) {
  measure::CheckOptions options;
  options.work_limit = 0;  // only max_elements decides how many elements are compared
  options.max_elements = sweep.max_elements;
  options.seed = sample_seed;
  measure::Product<T> product;
  product.a = view_a();
  product.b = view_b();
  exact_.emplace(product, sweep_case.shape.m, sweep_case.shape.n, options);
}

template <class T>
void TypedMatrices<T>::execute(kintsugi_handle handle, const Method& method, const Plan& plan,
                               Result& result) const {
  result.c = make_elements<T>(case_.shape.m, case_.shape.n);
  const auto start = std::chrono::steady_clock::now();
  require(method.scheme, execute_product(handle, plan, a_.data(), b_.data(), result.c.data()));
  result.seconds = seconds_since(start);
}

template <class T>
typename TypedMatrices<T>::Result TypedMatrices<T>::run(const Method& method) const {
  const Handle handle = make_handle();
  Result result;
  const auto planning = std::chrono::steady_clock::now();
  const Plan plan = make_plan(handle.get(), case_.shape, method);
  result.plan_seconds = seconds_since(planning);
  execute(handle.get(), method, plan, result);
  result.bounds = bounds_of(describe(plan), report_of(handle.get()));
  return result;
}

// Returns the engine's native product, with which rows are compared; nullptr if the engine has none. The
// product is computed once.
template <class T>
const typename TypedMatrices<T>::Result* TypedMatrices<T>::native_result(const std::string& engine) {
  const auto [found, is_new] = native_results_.try_emplace(engine);
  if (is_new) {
    try {
      Result result = run({case_.type, "native", engine, ""});
      result.errors = exact_->measure(view_c(result.c), view_c(result.c), &result.elements);
      found->second = std::move(result);
    } catch (const LibraryError& error) {
      if (error.is_unexpected()) throw;
    }
  }
  return found->second ? &*found->second : nullptr;
}

template <class T>
Json TypedMatrices<T>::errors_of(const Result& result) {
  Json errors = errors_document(result.errors);
  errors["mean_relative_long_double"] = nullptr;
  if (!lab::has_80_bit_long_double) return errors;
  if (long_double_sums_.empty())
    long_double_sums_ = lab::long_double_sums(view_a(), view_b(), result.elements);
  errors["mean_relative_long_double"] = number(lab::mean_relative_error(result.elements, long_double_sums_));
  return errors;
}

template <class T>
Json TypedMatrices<T>::measure(const Method& method) {
  const bool is_native = method.scheme == "native";
  const Result* baseline = native_result(method.engine);
  if (is_native && baseline == nullptr)
    fail("--schemes", "{} has no native product of {}", method.engine, type_text(method.type));
  Result measured;
  if (!is_native) {
    measured = run(method);
    const auto native_c = baseline != nullptr ? view_c(baseline->c) : core::MatrixView<const T>{};
    measured.errors = exact_->measure(view_c(measured.c), native_c, &measured.elements);
  }
  const Result& result = is_native ? *baseline : measured;
  Json row = row_key(case_, method);
  row["errors"] = errors_of(result);
  row["bound"] = check_bound<T>(result.bounds, view_a(), view_b(), result.elements);
  row["time"] = time_document(result.seconds, result.plan_seconds);
  row["baseline"] = nullptr;
  row["histogram"] = nullptr;
  if (is_native || baseline == nullptr) return row;
  row["baseline"] = {{"scheme", "native"},
                     {"engine", method.engine},
                     {"errors", baseline_errors(baseline->errors)},
                     {"time", time_document(baseline->seconds, baseline->plan_seconds)}};
  if (adds_histogram_) row["histogram"] = histogram_document(result.elements, baseline->elements);
  return row;
}

}  // namespace

Json row_key(const SweepCase& sweep_case, const Method& method) {
  const auto& [m, n, k] = sweep_case.shape;
  return {{"problem", {{"m", m}, {"n", n}, {"k", k}, {"type", type_text(sweep_case.type)}}},
          {"distribution", sweep_case.distribution},
          {"seed", sweep_case.seed},
          {"scheme", method.scheme},
          {"engine", method.engine},
          {"accumulator", method.accumulator.empty() ? Json() : Json(method.accumulator)}};
}

std::unique_ptr<CaseMatrices> make_matrices(const SweepCase& sweep_case, const Sweep& sweep) {
  if (sweep_case.type == Type::float32) return std::make_unique<TypedMatrices<float>>(sweep_case, sweep);
  return std::make_unique<TypedMatrices<double>>(sweep_case, sweep);
}

}  // namespace kintsugi::tools
