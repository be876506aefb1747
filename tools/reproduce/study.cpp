// The figures of fp16-emulation-study.
#include <cmath>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* study_error = "mean_relative_long_double";
constexpr const char* exact_error = "mean_relative";

const Way native{"native", "reference", ""};
const std::vector<std::string> types{"type1", "type2", "type3", "type4"};
// Of type 4 nothing is left in fp16 (all of A is below 2^-34), with or without a scale on the residual.
// The study's conclusion is of "elements not smaller than type 3".
const std::vector<std::string> within_reach{"type1", "type2", "type3"};

Way on_a100(const std::string& scheme) { return {scheme, "reference", "a100"}; }

// Two fp16 slices an operand, all four products.
std::string two_slices(int scale, int block) {
  return fmt::format("split-n:a=2:b=2:terms=4:scale={}:block={}", scale, block);
}
constexpr int unit_length = 16;  // of the A100's tensor cores: every instruction's sum leaves
const std::string best = two_slices(11, unit_length);

std::string with_terms(int terms) {
  return fmt::format("split-n:a=2:b=2:terms={}:scale=11:block={}", terms, unit_length);
}
std::string with_slices(int slices, const char* format, int scale, int block) {
  return fmt::format("split-n:format={0}:a={1}:b={1}:scale={2}:block={3}", format, slices, scale, block);
}

double error_in(const Evidence& evidence, const std::string& scheme, const std::string& type,
                const char* measure = study_error) {
  return evidence.errors(on_a100(scheme), measure, in_distribution(type)).front();
}

double native_error(const Evidence& evidence, const std::string& type) {
  return evidence.errors(native, study_error, in_distribution(type)).front();
}

// The errors of `one` over those of the others, on each type.
Measured by_type(const Evidence& evidence, const std::vector<std::string>& of_types, const std::string& one,
                 const std::vector<std::string>& others, const std::string& after = "") {
  Measured measured;
  for (const auto& type : of_types) {
    std::vector<double> values;
    for (const auto& other : others)
      values.push_back(error_in(evidence, one, type) / error_in(evidence, other, type));
    measured.push_back({type + after, values});
  }
  return measured;
}

Measured best_of_four(const Evidence& evidence) {
  return by_type(evidence, within_reach, best,
                 {two_slices(0, 0), two_slices(0, unit_length), two_slices(11, 0)});
}

Measured outside_over_inside(const Evidence& evidence) {
  Measured measured;
  for (const auto& [scale, name] : {std::pair{0, ", unscaled"}, std::pair{11, ", scaled"}}) {
    const auto part =
        by_type(evidence, within_reach, two_slices(scale, unit_length), {two_slices(scale, 0)}, name);
    measured.insert(measured.end(), part.begin(), part.end());
  }
  return measured;
}

Measured reference_differences(const Evidence& evidence) {
  Measured measured;
  for (const auto& type : types)
    measured.push_back(
        {type,
         {std::fabs(error_in(evidence, best, type, exact_error) / error_in(evidence, best, type) - 1)}});
  return measured;
}

PaperFigure types_figure() {
  return {
      "study-types",
      "fp16-emulation-study",
      "first figure",
      "sums inside or outside of the unit, residuals scaled or not, types 1 to 4",
      "the A100's model, 64 x 64 entries, k = 1024 (the study does not give its sizes); two slices, all four "
      "products, so that nothing but the two choices differs; outside: every 16 inner indices",
      {{"",
        {{"schemes",
          {"fp16", two_slices(0, 0), two_slices(0, unit_length), two_slices(11, 0), best, "markidis",
           "ootomo", "native"}},
         {"accumulators", {"a100"}},
         {"distributions", types},
         {"shapes", {"64x64x1024"}}}}},
      {{"parameter of the distribution"}, {study_error, exact_error}},
      {{"study-best", best_of_four},
       {"study-outside", outside_over_inside},
       {"study-ootomo",
        [](const Evidence& evidence) { return by_type(evidence, within_reach, "ootomo", {"markidis"}); }},
       {"own-long-double", reference_differences}}};
}

// What the error is divided by as the second, third and fourth product joins, on each type.
Measured gains_of_terms(const Evidence& evidence) {
  Measured measured;
  for (const auto& type : within_reach) {
    std::vector<double> gains;
    for (int terms = 2; terms <= 4; ++terms)
      gains.push_back(error_in(evidence, with_terms(terms - 1), type) /
                      error_in(evidence, with_terms(terms), type));
    measured.push_back({type, gains});
  }
  return measured;
}

// Errors over native FP32's.
Measured over_native(const Evidence& evidence, const std::vector<std::string>& of_types,
                     const std::string& scheme, const std::string& after = "") {
  Measured measured;
  for (const auto& type : of_types)
    measured.push_back({type + after, {error_in(evidence, scheme, type) / native_error(evidence, type)}});
  return measured;
}

Measured two_and_three_terms(const Evidence& evidence) {
  Measured measured = over_native(evidence, within_reach, with_terms(2), ", two terms");
  const auto part = over_native(evidence, within_reach, with_terms(3), ", three terms");
  measured.insert(measured.end(), part.begin(), part.end());
  return measured;
}

constexpr const char* below_subnormals =
    "Below 2^-14 the high slice of an unscaled split is subnormal, and below 2^-24 it is 0. A residual times "
    "2^11 then "
    "keeps 11 bits from 2^-25 on and none from 2^-36 on. Types 2 and 3 reach down to 2^-35, where native "
    "FP32 has all "
    "24 bits.";

PaperFigure terms_figure() {
  std::vector<std::string> schemes;
  for (int terms = 1; terms <= 4; ++terms) schemes.push_back(with_terms(terms));
  for (int slices = 1; slices <= 4; ++slices) schemes.push_back(with_slices(slices, "fp16", 11, unit_length));
  schemes.emplace_back("native");
  return {"study-terms",
          "fp16-emulation-study",
          "second figure",
          "error against the number of terms, and of slices",
          "as in the first figure; the terms in the order 00, 01, 10, 11; slices: as many of A as of B, all "
          "products",
          {{"",
            {{"schemes", schemes},
             {"accumulators", {"a100"}},
             {"distributions", types},
             {"shapes", {"64x64x1024"}}}}},
          {{"terms of the scheme", "slices of each operand"}, {study_error}},
          {{"study-more-terms", gains_of_terms,
            "The second and the third term do. The fourth, lo lo, is smaller than what the two slices and "
            "the fp32 "
            "sums lose."},
           {"study-three-terms", two_and_three_terms, below_subnormals},
           {"study-type3",
            [](const Evidence& evidence) { return over_native(evidence, within_reach, with_terms(3)); },
            below_subnormals},
           {"own-type4",
            [](const Evidence& evidence) {
              return Measured{{"type4", {error_in(evidence, with_terms(3), "type4")}}};
            }},
           {"own-slices", [](const Evidence& evidence) {
              return over_native(evidence, {"type1"}, with_slices(4, "fp16", 11, unit_length));
            }}}};
}

double fp64_ratio(const Evidence& evidence, const std::string& scheme, const char* accumulator) {
  return mean(ratios(
      evidence.pairs({scheme, "reference", accumulator}, native, exact_error, in_distribution("uniform"))));
}

Measured fp64_ratios(const Evidence& evidence) {
  return {{"four FP32 slices", {fp64_ratio(evidence, with_slices(4, "fp32", 24, 0), "fp32")}},
          {"six fp16 slices", {fp64_ratio(evidence, with_slices(6, "fp16", 11, unit_length), "a100")}}};
}

PaperFigure fp64_figure() {
  std::vector<std::string> schemes;
  for (int slices = 1; slices <= 4; ++slices) schemes.push_back(with_slices(slices, "fp32", 24, 0));
  for (int slices = 1; slices <= 6; ++slices) schemes.push_back(with_slices(slices, "fp16", 11, unit_length));
  schemes.emplace_back("native");
  return {"study-fp64",
          "fp16-emulation-study",
          "Ozaki's scheme (no figure is printed)",
          "fp64 from fp32 and fp16 slices",
          "64 x 64 entries, k = 256; fp32 slices with sequential fp32 sums, fp16 slices on the A100's model",
          {{"",
            {{"schemes", schemes},
             {"types", {"fp64"}},
             {"accumulators", {"a100", "fp32"}},
             {"distributions", {"uniform", "type1"}},
             {"shapes", {"64x64x256"}}}}},
          {{"slices of each operand"}, {exact_error}},
          {{"own-fp64", fp64_ratios}}};
}

}  // namespace

std::vector<PaperFigure> study_figures() { return {types_figure(), terms_figure(), fp64_figure()}; }

}  // namespace kintsugi::tools
