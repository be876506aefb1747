#include "lab/reproduce/product_errors.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "lab/numerics/long_double_reference.hpp"
#include "tools/gemm/product.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/native_difference.hpp"
#include "tools/plan.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::int64_t quick_edge = 32;  // most rows, and columns, of C with --quick
constexpr std::int64_t quick_k = 256;    // largest k with --quick
// Relative differences to the native product below which the shares of elements are counted.
constexpr double limits[] = {1e-7, 1e-6, 1e-5, 1e-4};

using View = core::MatrixView<const float>;

View row_major(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  return {values.data(), rows, columns, columns, 1};
}

std::vector<float> operand(const ProductErrors& study, const std::string& distribution, measure::Side side,
                           std::uint64_t seed, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  measure::fill(measure::parse_distribution(distribution), side, seed,
                core::MatrixView<float>{values.data(), rows, columns, columns, 1});
  if (study.positive) {
    for (float& value : values) value = std::fabs(value);
  }
  return values;
}

// Returns the value rounded to FP16: to nearest, ties to even, with subnormal numbers.
float rounded_to_fp16(float value) {
  constexpr int fraction_bits = 10;
  constexpr int min_quantum = -24;
  constexpr float largest = 65504;
  if (value == 0 || !std::isfinite(value)) return value;
  const int quantum = std::max(std::ilogb(value) - fraction_bits, min_quantum);
  const float rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  return std::fabs(rounded) > largest ? std::copysign(HUGE_VALF, value) : rounded;
}

// Operands of one distribution, shape and seed of a study, with their exact and their native product.
class StudyCase {
 public:
  StudyCase(const ProductErrors& study, std::string distribution, const Shape& shape, std::uint64_t seed)
      : study_(study), distribution_(std::move(distribution)), shape_(shape), seed_(seed),
        a_(operand(study, distribution_, measure::Side::a, seed, shape.m, shape.k)),
        b_(operand(study, distribution_, measure::Side::b, seed, shape.k, shape.n)), exact_(make_exact()),
        native_(run({"native", study.native, ""})) {}

  Json row(const SchemeOnEngine& method) const;

 private:
  measure::ExactReference<float> make_exact() const {
    measure::CheckOptions options;
    options.work_limit = 0;  // so that max_elements alone decides how many elements are compared
    options.max_elements = study_.max_elements;
    options.seed = sample_seed;
    measure::Product<float> product;
    product.a = row_major(a_, shape_.m, shape_.k);
    product.b = row_major(b_, shape_.k, shape_.n);
    return {product, shape_.m, shape_.n, options};
  }
  std::vector<float> run(const SchemeOnEngine& method) const;
  // Returns the errors of a product, and fills `elements` with those of the compared elements.
  Json errors_of(const std::vector<float>& c, std::vector<measure::ElementError>& elements) const;
  Json shares_of(const std::vector<measure::ElementError>& elements) const;

  const ProductErrors& study_;
  std::string distribution_;
  Shape shape_;
  std::uint64_t seed_;
  std::vector<float> a_;
  std::vector<float> b_;
  measure::ExactReference<float> exact_;
  std::vector<float> native_;
};

std::vector<float> StudyCase::run(const SchemeOnEngine& method) const {
  std::vector<float> c(static_cast<std::size_t>(shape_.m * shape_.n));
  const Handle handle = make_handle();
  const Plan plan =
      make_plan(handle.get(), shape_, {Type::float32, method.scheme, method.engine, method.accumulator});
  require(method.scheme, execute_product(handle.get(), plan, a_.data(), b_.data(), c.data()));
  return c;
}

Json StudyCase::errors_of(const std::vector<float>& c, std::vector<measure::ElementError>& elements) const {
  Json errors = errors_document(
      exact_.measure(row_major(c, shape_.m, shape_.n), row_major(native_, shape_.m, shape_.n), &elements));
  errors["mean_relative_long_double"] = nullptr;
  if (lab::has_80_bit_long_double) {
    const auto sums =
        lab::long_double_sums(row_major(a_, shape_.m, shape_.k), row_major(b_, shape_.k, shape_.n), elements);
    errors["mean_relative_long_double"] = number(lab::mean_relative_error(elements, sums));
  }
  return errors;
}

Json StudyCase::shares_of(const std::vector<measure::ElementError>& elements) const {
  Json shares = Json::array();
  for (const double limit : limits) {
    const auto below =
        std::count_if(elements.begin(), elements.end(), [&](const measure::ElementError& element) {
          const float native = native_[static_cast<std::size_t>(element.i * shape_.n + element.j)];
          return std::fabs(measure::relative_difference(element.computed, native)) < limit;
        });
    shares.push_back(
        {{"limit", limit}, {"share", static_cast<double>(below) / static_cast<double>(elements.size())}});
  }
  return shares;
}

Json StudyCase::row(const SchemeOnEngine& method) const {
  std::vector<float> c = run(method);
  if (study_.fp16_output) std::transform(c.begin(), c.end(), c.begin(), rounded_to_fp16);
  std::vector<measure::ElementError> elements;
  Json errors = errors_of(c, elements);
  return {{"problem", {{"m", shape_.m}, {"n", shape_.n}, {"k", shape_.k}, {"type", "fp32"}}},
          {"distribution", study_.positive ? positive_text(distribution_) : distribution_},
          {"seed", seed_},
          {"scheme", method.scheme},
          {"engine", method.engine},
          {"accumulator", method.accumulator.empty() ? Json() : Json(method.accumulator)},
          {"native", study_.native},
          {"output", study_.fp16_output ? "fp16" : "fp32"},
          {"errors", std::move(errors)},
          {"shares", shares_of(elements)}};
}

Shape cut_down(const Shape& shape) {
  return {std::min(shape.m, quick_edge), std::min(shape.n, quick_edge), std::min(shape.k, quick_k)};
}

void add_rows(Json& rows, const ProductErrors& study, const std::string& distribution, const Shape& shape,
              std::uint64_t seed) {
  const StudyCase study_case(study, distribution, shape, seed);
  std::set<std::string> rows_made;  // native rows have no accumulator, so several methods share them
  for (const auto& scheme : study.schemes) {
    for (const SchemeOnEngine& method : study.methods) {
      const std::string accumulator = scheme == "native" ? "" : method.accumulator;
      if (rows_made.insert(scheme + " " + method.engine + " " + accumulator).second)
        rows.push_back(study_case.row({scheme, method.engine, accumulator}));
    }
  }
}

}  // namespace

std::string positive_text(const std::string& distribution) { return distribution + ", positive"; }

Json product_errors(const std::vector<ProductErrors>& studies, bool quick) {
  Json result = document("product-errors");
  // "samples" tells a document of --quick from one of a full run.
  result["samples"] = quick ? quick_edge : studies.front().shapes.front().m;
  result["seed"] = sample_seed;
  result["rows"] = Json::array();
  for (const ProductErrors& study : studies) {
    for (const auto& distribution : study.distributions) {
      std::set<std::string> shapes_done;  // --quick makes some shapes equal
      for (const Shape& full : study.shapes) {
        const Shape shape = quick ? cut_down(full) : full;
        if (!shapes_done.insert(fmt::format("{}x{}x{}", shape.m, shape.n, shape.k)).second) continue;
        for (const std::uint64_t seed : quick ? std::vector{study.seeds.front()} : study.seeds)
          add_rows(result["rows"], study, distribution, shape, seed);
      }
    }
  }
  return result;
}

Filter against_native(const std::string& engine) {
  return [engine](const Json& row) { return cell(row, "native") == engine; };
}

Filter of_sweeps() {
  return [](const Json& row) { return !row.contains("native"); };
}

}  // namespace kintsugi::tools
