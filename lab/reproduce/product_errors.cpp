#include "lab/reproduce/product_errors.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "lab/accuracy/case.hpp"
#include "lab/numerics/long_double_reference.hpp"
#include "tools/gemm/product.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/native_difference.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::int64_t quick_edge = 32;  // most rows, and columns, of C with --quick
constexpr std::int64_t quick_k = 256;    // largest k with --quick
// Relative differences to the native product below which the shares of elements are counted.
constexpr double limits[] = {1e-7, 1e-6, 1e-5, 1e-4};

std::vector<float> operand(const ProductErrors& study, const std::string& distribution, measure::Side side,
                           std::uint64_t seed, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values = random_elements<float>(distribution, side, seed, rows, columns);
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

// Returns, for each of `limits`, the share of compared elements that differ less from the native product.
Json shares_of(const std::vector<measure::ElementError>& elements, const std::vector<float>& native,
               std::int64_t columns) {
  Json shares = Json::array();
  for (const double limit : limits) {
    const auto below =
        std::count_if(elements.begin(), elements.end(), [&](const measure::ElementError& element) {
          const float of_native = native[static_cast<std::size_t>(element.i * columns + element.j)];
          return std::fabs(measure::relative_difference(element.computed, of_native)) < limit;
        });
    shares.push_back(
        {{"limit", limit}, {"share", static_cast<double>(below) / static_cast<double>(elements.size())}});
  }
  return shares;
}

void add_rows(Json& rows, const ProductErrors& study, const std::string& distribution, const Shape& shape,
              std::uint64_t seed) {
  ComparedCase<float> compared(shape, operand(study, distribution, measure::Side::a, seed, shape.m, shape.k),
                               operand(study, distribution, measure::Side::b, seed, shape.k, shape.n),
                               study.max_elements);
  const TimedProduct<float> native = compared.multiply({Type::float32, "native", study.native, ""});
  std::set<std::string> rows_made;  // native rows have no accumulator, so several methods share them
  for (const auto& scheme : study.schemes) {
    for (const SchemeOnEngine& method : study.methods) {
      const std::string accumulator = scheme == "native" ? "" : method.accumulator;
      if (!rows_made.insert(scheme + " " + method.engine + " " + accumulator).second) continue;
      TimedProduct<float> product = compared.multiply({Type::float32, scheme, method.engine, accumulator});
      auto& c = product.c;
      if (study.fp16_output) std::transform(c.begin(), c.end(), c.begin(), rounded_to_fp16);
      compared.compare(product, &native);
      rows.push_back({{"problem", {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"type", "fp32"}}},
                      {"distribution", study.positive ? positive_text(distribution) : distribution},
                      {"seed", seed},
                      {"scheme", scheme},
                      {"engine", method.engine},
                      {"accumulator", accumulator.empty() ? Json() : Json(accumulator)},
                      {"native", study.native},
                      {"output", study.fp16_output ? "fp16" : "fp32"},
                      {"errors", product.errors},
                      {"shares", shares_of(product.elements, native.c, shape.n)}});
    }
  }
}

Json product_errors(const std::vector<ProductErrors>& studies, bool quick) {
  Json result =
      analysis_document("product-errors", quick ? quick_edge : studies.front().shapes.front().m, sample_seed);
  for (const ProductErrors& study : studies) {
    for (const auto& distribution : study.distributions) {
      std::set<std::string> shapes_done;  // --quick makes some shapes equal
      for (Shape shape : study.shapes) {
        if (quick)
          shape = {std::min(shape.m, quick_edge), std::min(shape.n, quick_edge), std::min(shape.k, quick_k)};
        if (!shapes_done.insert(shape_text(shape)).second) continue;
        for (const std::uint64_t seed : quick ? std::vector{study.seeds.front()} : study.seeds)
          add_rows(result["rows"], study, distribution, shape, seed);
      }
    }
  }
  return result;
}

}  // namespace

std::string positive_text(const std::string& distribution) { return distribution + ", positive"; }

Analysis product_errors_analysis(const std::string& name, const std::vector<ProductErrors>& studies) {
  return {.format = "product-errors",
          .make_document = [=](bool quick) { return product_errors(studies, quick); },
          .name = name};
}

Filter against_native(const std::string& engine) { return where("native", engine); }

Filter of_sweeps() {
  return [](const Json& row) { return !row.contains("native"); };
}

}  // namespace kintsugi::tools
