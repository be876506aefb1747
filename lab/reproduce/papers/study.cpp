// Figures of the paper fp16-emulation-study.
#include <cmath>

#include "lab/reproduce/product_errors.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* study_error = "mean_relative_long_double";
constexpr const char* exact_error = "mean_relative";

const SchemeOnEngine native{"native", "reference", ""};
const std::vector<std::string> type_distributions{"type1", "type2", "type3", "type4"};
// Types for which the study's conclusion holds, "elements not smaller than type 3". fp16 keeps nothing of
// type 4 (all of A is below 2^-34), with or without a scale on the residual.
const std::vector<std::string> within_reach{"type1", "type2", "type3"};

SchemeOnEngine on_a100(const std::string& scheme) { return {scheme, "reference", "a100"}; }

// Returns the scheme of two fp16 slices per operand with all four products.
std::string two_slices(int scale, int block) {
  return fmt::format("split-n:a=2:b=2:terms=4:scale={}:block={}", scale, block);
}
constexpr int unit_length = 16;  // inner length of an A100 instruction, after which sums are added outside
const std::string best = two_slices(11, unit_length);  // by the study: residual scaled, sums outside

// Returns the scheme of the two slices of `best` with fewer products.
std::string with_terms(int terms) {
  return fmt::format("split-n:a=2:b=2:terms={}:scale=11:block={}", terms, unit_length);
}
std::string with_slices(int slices, const char* format, int scale, int block) {
  return fmt::format("split-n:format={0}:a={1}:b={1}:scale={2}:block={3}", format, slices, scale, block);
}

// Variants of signs and lengths, which the study does not give.
struct Variant {
  std::string name;
  bool positive;
  double k;
};
const std::vector<Variant> variants{{.name = "signs random, k = 1024", .positive = false, .k = 1024},
                                    {.name = "signs random, k = 4096", .positive = false, .k = 4096},
                                    {.name = "positive, k = 1024", .positive = true, .k = 1024},
                                    {.name = "positive, k = 4096", .positive = true, .k = 4096}};

Filter rows_of(const Variant& variant, const std::string& type) {
  return both(in_distribution(variant.positive ? positive_text(type) : type), at_k(variant.k));
}

// Returns the error averaged over seeds.
double error_in(const Evidence& evidence, const SchemeOnEngine& method, const std::string& type,
                const Variant& variant = variants.front(), const char* measure = study_error) {
  return mean(evidence.errors(method, measure, rows_of(variant, type)));
}

using TypeValues = std::function<std::vector<double>(const std::string& type, const Variant& variant)>;

// Returns a series for each variant and type, named by the type, `suffix` and the variant.
Measured by_variant(const TypeValues& values, const std::string& suffix = "") {
  const auto series = [&](const Variant& variant, const std::string& type) {
    return SeriesValues{fmt::format("{}{}, {}", type, suffix, variant.name), values(type, variant)};
  };
  return series_of(series, variants, within_reach);
}

// Returns the errors of a scheme over those of each of the others.
Measured over_others(const Evidence& evidence, const std::string& scheme,
                     const std::vector<std::string>& others, const std::string& suffix = "") {
  return by_variant(
      [&](const std::string& type, const Variant& variant) {
        std::vector<double> values;
        for (const auto& other : others)
          values.push_back(error_in(evidence, on_a100(scheme), type, variant) /
                           error_in(evidence, on_a100(other), type, variant));
        return values;
      },
      suffix);
}

// Returns the errors of `best` over those of the three other combinations of scaled and outside.
Measured best_of_four(const Evidence& evidence) {
  return over_others(evidence, best, {two_slices(0, 0), two_slices(0, unit_length), two_slices(11, 0)});
}

Measured outside_over_inside(const Evidence& evidence) {
  return joined(over_others(evidence, two_slices(0, unit_length), {two_slices(0, 0)}, ", unscaled"),
                over_others(evidence, two_slices(11, unit_length), {two_slices(11, 0)}, ", scaled"));
}

// Returns by how much errors against the exact product differ from those against long double sums.
Measured reference_differences(const Evidence& evidence) {
  const auto difference = [&](const std::string& type) {
    const double exact = error_in(evidence, on_a100(best), type, variants.front(), exact_error);
    return SeriesValues{type, {std::fabs(exact / error_in(evidence, on_a100(best), type) - 1)}};
  };
  return series_of(difference, type_distributions);
}

PaperSweep study_sweep(const std::vector<std::string>& schemes) {
  return {.name = "",
          .lists = {{"schemes", schemes},
                    {"accumulators", {"a100"}},
                    {"distributions", type_distributions},
                    {"shapes", {"64x64x1024", "64x64x4096"}},
                    {"seeds", {"1", "2", "3", "4", "5"}}}};
}

// Returns the analysis of these schemes on nonnegative elements.
Analysis positive_rows(const std::vector<std::string>& schemes) {
  return product_errors_analysis("positive", {{.schemes = schemes,
                                               .methods = {on_a100("")},
                                               .distributions = within_reach,
                                               .shapes = {{64, 64, 1024}, {64, 64, 4096}},
                                               .seeds = {1, 2, 3, 4, 5},
                                               .positive = true}});
}

PaperFigure types_figure() {
  const std::vector<std::string> schemes{
      "fp16",   two_slices(0, 0), two_slices(0, unit_length), two_slices(11, 0), best, "markidis",
      "ootomo", "native"};
  return {
      .name = "study-types",
      .paper = "fp16-emulation-study",
      .place = "first figure",
      .subject = "sums inside or outside of the unit, residuals scaled or not, types 1 to 4",
      .conditions =
          "the A100's model, 64 x 64 elements, five seeds; the study gives neither sizes nor signs: k = 1024 "
          "and 4096, signs random and all positive (types 1 to 3); two slices, all four products, so that "
          "nothing but the two choices differs; outside: every 16 inner indices",
      .sweeps = {study_sweep(schemes)},
      .drawn = {.dimensions = {"parameter of the distribution"}, .measures = {study_error, exact_error}},
      .claims = {{"study-best", best_of_four},
                 {"study-outside", outside_over_inside},
                 {"study-ootomo",
                  [](const Evidence& evidence) { return over_others(evidence, "ootomo", {"markidis"}); }},
                 {"own-long-double", reference_differences}},
      .analysis = positive_rows(schemes)};
}

Measured four_slices(const Evidence& evidence) {
  return {{"type1",
           {mean(evidence.ratios(on_a100(with_slices(4, "fp16", 11, unit_length)), native, study_error,
                                 rows_of(variants.front(), "type1")))}}};
}

PaperFigure terms_figure() {
  std::vector<std::string> terms;
  for (int count = 1; count <= 4; ++count) terms.push_back(with_terms(count));
  terms.emplace_back("native");
  std::vector<std::string> slices;
  for (int count = 1; count <= 4; ++count) slices.push_back(with_slices(count, "fp16", 11, unit_length));
  return {
      .name = "study-terms",
      .paper = "fp16-emulation-study",
      .place = "second figure",
      .subject = "error against the number of terms, and of slices",
      .conditions =
          "as in the first figure; the terms in the order 00, 01, 10, 11; slices: as many of A as of B, all "
          "products, one seed at k = 1024",
      .sweeps = {study_sweep(terms),
                 {.name = "slices",
                  .lists = {{"schemes", slices},
                            {"accumulators", {"a100"}},
                            {"distributions", type_distributions},
                            {"shapes", {"64x64x1024"}}}}},
      .drawn = {.dimensions = {"terms of the scheme", "slices of each operand"}, .measures = {study_error}},
      .claims = {{"own-type4",
                  [](const Evidence& evidence) {
                    return Measured{{"type4", {error_in(evidence, on_a100(with_terms(3)), "type4")}}};
                  }},
                 {"own-slices", four_slices}}};
}

// ------------------------------------------------- the squares of the study's code

// Squares that the study's published code measures; it draws signs at random.
const std::vector<double> squares{128, 256, 512, 1024};
// The text's measure, and the code's: the norm of the errors over that of the sums.
const std::vector<std::pair<std::string, const char*>> measures{{"mean relative error", study_error},
                                                                {"relative norm", "frobenius_relative"}};

// Returns a series for each measure, size and type. The values are of the errors of the schemes, averaged
// over seeds.
Measured by_square(const Evidence& evidence, const std::vector<SchemeOnEngine>& methods,
                   const std::string& label,
                   const std::function<std::vector<double>(const std::vector<double>& errors)>& values) {
  const auto series = [&](const auto& named_measure, double n, const std::string& type) {
    std::vector<double> errors;
    for (const SchemeOnEngine& method : methods)
      errors.push_back(
          mean(evidence.errors(method, named_measure.second, both(in_distribution(type), at_k(n)))));
    return SeriesValues{fmt::format("{}{}, {}, n = {}", type, label, named_measure.first, n), values(errors)};
  };
  return series_of(series, measures, squares, within_reach);
}

// Returns the factors by which the error decreases when the second, third and fourth product are added.
Measured gains_of_terms(const Evidence& evidence) {
  std::vector<SchemeOnEngine> methods;
  for (int terms = 1; terms <= 4; ++terms) methods.push_back(on_a100(with_terms(terms)));
  return by_square(evidence, methods, "", [](const std::vector<double>& errors) {
    std::vector<double> gains;
    for (std::size_t i = 1; i < errors.size(); ++i) gains.push_back(errors[i - 1] / errors[i]);
    return gains;
  });
}

// Returns the errors with a number of terms over native FP32's.
Measured over_native(const Evidence& evidence, int terms, const std::string& label = "") {
  return by_square(evidence, {on_a100(with_terms(terms)), native}, label,
                   [](const std::vector<double>& errors) { return std::vector{errors[0] / errors[1]}; });
}

Measured two_and_three_terms(const Evidence& evidence) {
  return joined(over_native(evidence, 2, ", two terms"), over_native(evidence, 3, ", three terms"));
}

constexpr const char* below_subnormals =
    "Below 2^-14 the high slice of an unscaled split is subnormal, and below 2^-24 it is 0. A residual "
    "times 2^11 then keeps 11 bits from 2^-25 on and none from 2^-36 on. Types 2 and 3 reach down to "
    "2^-35, where native FP32 has all 24 bits.";

PaperFigure squares_figure() {
  std::vector<std::string> schemes;
  for (int count = 1; count <= 4; ++count) schemes.push_back(with_terms(count));
  schemes.emplace_back("native");
  // All elements of the small squares, 128 rows and columns of the others.
  const std::vector<Shape> shapes{{128, 128, 128}, {256, 256, 256}, {128, 128, 512}, {128, 128, 1024}};
  return {
      .name = "study-terms-squares",
      .paper = "fp16-emulation-study",
      .place = "second figure",
      .subject = "error against the number of terms, squares of the study's code",
      .conditions =
          "the A100's model, ten seeds; as the study's published code has it: signs at random, squares of 128 "
          "to 1024, of which all elements are compared up to 256 and 128 x 128 above; the text's mean relative "
          "error, and the code's norm of the errors over that of the sums",
      .claims = {{"study-more-terms", gains_of_terms,
                  "The fourth term, lo lo, is smaller than what the two slices and the fp32 sums lose."},
                 {"study-three-terms", two_and_three_terms, below_subnormals},
                 {"study-type3", [](const Evidence& evidence) { return over_native(evidence, 3); },
                  below_subnormals}},
      .analysis = product_errors_analysis("", {{.schemes = schemes,
                                                .methods = {on_a100("")},
                                                .distributions = within_reach,
                                                .shapes = shapes,
                                                .seeds = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20},
                                                .max_elements = 65536}})};
}

double fp64_ratio(const Evidence& evidence, const std::string& scheme, const char* accumulator) {
  return mean(
      evidence.ratios({scheme, "reference", accumulator}, native, exact_error, in_distribution("uniform")));
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
  std::vector<std::string> exact;
  for (int slices = 2; slices <= 8; ++slices) exact.push_back(fmt::format("ozaki-fp16:slices={}", slices));
  const auto sweep = [](const char* name, const std::vector<std::string>& swept,
                        const std::vector<std::string>& accumulators) {
    return PaperSweep{.name = name,
                      .lists = {{"schemes", swept},
                                {"types", {"fp64"}},
                                {"accumulators", accumulators},
                                {"distributions", {"uniform", "type1"}},
                                {"shapes", {"64x64x256"}}}};
  };
  return {
      .name = "study-fp64",
      .paper = "fp16-emulation-study",
      .place = "Ozaki's scheme (no figure is printed)",
      .subject = "fp64 from fp32 and fp16 slices",
      .conditions =
          "64 x 64 elements, k = 256; fp32 slices with sequential fp32 sums, fp16 slices on the A100's model; "
          "beside them ozaki-fp16's slices, whose sums are exact there",
      .sweeps = {sweep("", schemes, {"a100", "fp32"}), sweep("exact", exact, {"a100"})},
      .drawn = {.dimensions = {"slices of each operand", "slices of the scheme"}, .measures = {exact_error}},
      .claims = {{"own-fp64", fp64_ratios}}};
}

}  // namespace

std::vector<PaperFigure> study_figures() {
  return {types_figure(), terms_figure(), squares_figure(), fp64_figure()};
}

}  // namespace kintsugi::tools
