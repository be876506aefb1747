#include "accuracy/measure.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "accuracy/promise.hpp"
#include "gemm/check.hpp"
#include "lab/generators/generators.hpp"
#include "lab/histogram.hpp"
#include "lab/native_difference.hpp"
#include "lab/reference/long_double_reference.hpp"

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
std::vector<T> generated(const CellKey& key, lab::Side side, std::int64_t rows, std::int64_t columns) {
  std::vector<T> values = make_elements<T>(rows, columns);
  try {
    lab::fill(lab::parse_distribution(key.distribution), side, key.seed,
              core::MatrixView<T>{values.data(), rows, columns, columns, 1});
  } catch (const std::runtime_error& error) {  // the type cannot hold the distribution's values
    fail("--distributions", "{}", error.what());
  }
  return values;
}

Json time_document(double seconds, double plan_seconds) {
  return {{"seconds", seconds}, {"runs", 1}, {"plan_seconds", plan_seconds}};
}

// Returns the members of the native errors that other rows repeat for comparison.
Json baseline_errors(const lab::ErrorReport& errors) {
  const Json all = errors_document(errors);
  Json repeated;
  for (const char* key : {"frobenius_relative", "max_relative", "mean_relative", "max_componentwise",
                          "max_ulp", "correctly_rounded_fraction"}) {
    repeated[key] = all.at(key);
  }
  return repeated;
}

// Returns the histogram of differences between the compared elements of a product and the same ones of the
// native product.
Json histogram_document(const std::vector<lab::ElementError>& elements,
                        const std::vector<lab::ElementError>& native) {
  std::vector<double> differences;
  for (std::size_t e = 0; e < elements.size(); ++e)
    differences.push_back(lab::relative_difference(elements[e].computed, native[e].computed));
  const std::vector<double>& edges = lab::signed_logarithmic_edges();
  return {{"edges", edges}, {"counts", lab::histogram(differences, edges)}};
}

template <class T>
class TypedCell : public AccuracyCell {
 public:
  TypedCell(const CellKey& key, const Sweep& sweep);
  Json row(const Method& method) override;

 private:
  struct Result {
    std::vector<T> c;  // row-major (m,n)
    Json bounds;       // result of bounds_of()
    double plan_seconds = 0;
    double seconds = 0;
    lab::ErrorReport errors;
    std::vector<lab::ElementError> elements;
  };

  core::MatrixView<const T> view_a() const {
    return {a_.data(), key_.shape.m, key_.shape.k, key_.shape.k, 1};
  }
  core::MatrixView<const T> view_b() const {
    return {b_.data(), key_.shape.k, key_.shape.n, key_.shape.n, 1};
  }
  core::MatrixView<const T> view_c(const std::vector<T>& c) const {
    return {c.data(), key_.shape.m, key_.shape.n, key_.shape.n, 1};
  }
  Result run(const Method& method) const;
  void execute(kintsugi_handle handle, const Method& method, const Plan& plan, Result& result) const;
  const Result* native(const std::string& engine);
  Json errors_of(const Result& result);

  CellKey key_;
  bool histogram_;
  std::vector<T> a_;
  std::vector<T> b_;
  std::optional<lab::ExactReference<T>> exact_;
  std::vector<long double> long_double_sums_;  // sums of the compared elements, computed for the first row
  std::map<std::string, std::optional<Result>> native_;  // key: engine; nullopt: it has no native product
};

template <class T>
TypedCell<T>::TypedCell(const CellKey& key, const Sweep& sweep)
    : key_(key), histogram_(sweep.histogram), a_(generated<T>(key, lab::Side::a, key.shape.m, key.shape.k)),
      b_(generated<T>(key, lab::Side::b, key.shape.k, key.shape.n)) {
  lab::CheckOptions options;
  options.work_limit = 0;
  options.max_elements = sweep.max_elements;
  options.seed = sample_seed;
  lab::Product<T> product;
  product.a = view_a();
  product.b = view_b();
  exact_.emplace(product, key.shape.m, key.shape.n, options);
}

template <class T>
void TypedCell<T>::execute(kintsugi_handle handle, const Method& method, const Plan& plan,
                           Result& result) const {
  result.c = make_elements<T>(key_.shape.m, key_.shape.n);
  const auto start = std::chrono::steady_clock::now();
  require(method.scheme, execute_product(handle, plan, a_.data(), b_.data(), result.c.data()));
  result.seconds = seconds_since(start);
}

template <class T>
typename TypedCell<T>::Result TypedCell<T>::run(const Method& method) const {
  const Handle handle = make_handle();
  Result result;
  const auto planning = std::chrono::steady_clock::now();
  const Plan plan = make_plan(handle.get(), key_.shape, method);
  result.plan_seconds = seconds_since(planning);
  execute(handle.get(), method, plan, result);
  result.bounds = bounds_of(describe(plan), report_of(handle.get()));
  return result;
}

// Returns the engine's native product, with which rows are compared; nullptr if it has none.
template <class T>
const typename TypedCell<T>::Result* TypedCell<T>::native(const std::string& engine) {
  const auto [found, is_new] = native_.try_emplace(engine);
  if (is_new) {
    try {
      Result result = run({key_.type, "native", engine, ""});
      result.errors = exact_->measure(view_c(result.c), view_c(result.c), &result.elements);
      found->second = std::move(result);
    } catch (const LibraryError& error) {
      if (error.is_unexpected()) throw;
    }
  }
  return found->second ? &*found->second : nullptr;
}

template <class T>
Json TypedCell<T>::errors_of(const Result& result) {
  Json errors = errors_document(result.errors);
  Json& mean = errors["mean_relative_long_double"];
  if (!lab::has_80_bit_long_double) return errors;
  if (long_double_sums_.empty())
    long_double_sums_ = lab::long_double_sums(view_a(), view_b(), result.elements);
  mean = number(lab::mean_relative_error(result.elements, long_double_sums_));
  return errors;
}

template <class T>
Json TypedCell<T>::row(const Method& method) {
  const bool is_native = method.scheme == "native";
  const Result* baseline = native(method.engine);
  if (is_native && baseline == nullptr)
    fail("--schemes", "{} has no native product of {}", method.engine, type_text(method.type));
  Result measured;
  if (!is_native) {
    measured = run(method);
    const auto native_c = baseline != nullptr ? view_c(baseline->c) : core::MatrixView<const T>{};
    measured.errors = exact_->measure(view_c(measured.c), native_c, &measured.elements);
  }
  const Result& result = is_native ? *baseline : measured;
  Json row = row_key(key_, method);
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
  if (histogram_) row["histogram"] = histogram_document(result.elements, baseline->elements);
  return row;
}

}  // namespace

Json row_key(const CellKey& cell, const Method& method) {
  const auto& [m, n, k] = cell.shape;
  return {{"problem", {{"m", m}, {"n", n}, {"k", k}, {"type", type_text(cell.type)}}},
          {"distribution", cell.distribution},
          {"seed", cell.seed},
          {"scheme", method.scheme},
          {"engine", method.engine},
          {"accumulator", method.accumulator.empty() ? Json() : Json(method.accumulator)}};
}

std::unique_ptr<AccuracyCell> make_cell(const CellKey& key, const Sweep& sweep) {
  if (key.type == Type::float32) return std::make_unique<TypedCell<float>>(key, sweep);
  return std::make_unique<TypedCell<double>>(key, sweep);
}

}  // namespace kintsugi::tools
