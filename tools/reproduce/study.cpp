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

Answer outside_and_scaled_is_best(const Evidence& evidence) {
  double worst = 0;
  std::string where;
  for (const auto& type : within_reach) {
    for (const auto& other : {two_slices(0, 0), two_slices(0, unit_length), two_slices(11, 0)}) {
      const double ratio = error_in(evidence, best, type) / error_in(evidence, other, type);
      if (ratio <= worst) continue;
      worst = ratio;
      where = type + " against " + other;
    }
  }
  return agrees_if(worst <= 1.02,
                   fmt::format("at most {:.3g} times the error of any other ({})", worst, where),
                   "another is better there");
}

Answer each_gains(const Evidence& evidence) {
  const double scaling =
      error_in(evidence, two_slices(0, unit_length), "type2") / error_in(evidence, best, "type2");
  const double outside = error_in(evidence, two_slices(11, 0), "type1") / error_in(evidence, best, "type1");
  return agrees_if(
      scaling > 2 && outside > 2,
      fmt::format("scaling {:.3g} times less on type2, outside {:.3g} times less on type1", scaling, outside),
      "one of them gains little");
}

Answer reference_is_enough(const Evidence& evidence) {
  double largest = 0;
  for (const auto& type : types) {
    const double difference =
        error_in(evidence, best, type, exact_error) / error_in(evidence, best, type) - 1;
    largest = std::max(largest, std::fabs(difference));
  }
  return agrees_if(largest < 1e-3,
                   fmt::format("the errors differ by a factor of 1 + {:.1g} at most", largest),
                   "the reference's own error is seen");
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
      {{"Outside and scaled is the best of the four (types 1 to 3)", "best (agrees: within 2 %)",
        outside_and_scaled_is_best},
       {"Both matter: scaling where values are small, outside where they are not", "better", each_gains},
       {"Ootomo's scheme is better than Markidis's, with three products for four (types 1 to 3)", "better",
        [](const Evidence& evidence) {
          std::vector<double> values;
          for (const auto& type : within_reach)
            values.push_back(error_in(evidence, "ootomo", type) / error_in(evidence, "markidis", type));
          return agrees_if(most(values) < 1, range_text(values) + " times its error", "not on every type");
        }},
       {"80-bit long double is a good enough reference", "assumed", reference_is_enough}}};
}

// What the error is divided by as the last of `terms` products joins, on each type.
std::vector<double> gains_of(const Evidence& evidence, int terms) {
  std::vector<double> gains;
  for (const auto& type : within_reach)
    gains.push_back(error_in(evidence, with_terms(terms - 1), type) /
                    error_in(evidence, with_terms(terms), type));
  return gains;
}

Answer more_terms_help(const Evidence& evidence) {
  const auto second = gains_of(evidence, 2);
  const auto third = gains_of(evidence, 3);
  const auto fourth = gains_of(evidence, 4);
  return agrees_if(least(second) > 1 && least(third) > 1 && least(fourth) > 1,
                   fmt::format("the second term divides the error by {}, the third by {}, the fourth by {}",
                               range_text(second), range_text(third), range_text(fourth)),
                   "The second and the third term do. The fourth, lo lo, is smaller than what the two slices "
                   "and the fp32 sums lose: it helps a little or not at all.");
}

Answer three_terms_needed(const Evidence& evidence) {
  std::vector<double> two;
  std::vector<double> three;
  for (const auto& type : within_reach) {
    two.push_back(error_in(evidence, with_terms(2), type) / native_error(evidence, type));
    three.push_back(error_in(evidence, with_terms(3), type) / native_error(evidence, type));
  }
  const double first = three.front();
  return agrees_if(two.front() > 10 && first < 3,
                   fmt::format("two terms {:.3g}, three terms {:.3g} times native fp32's error on type1",
                               two.front(), first),
                   "three terms are not near fp32");
}

Answer enough_down_to_type_three(const Evidence& evidence) {
  std::vector<double> values;
  for (const auto& type : within_reach)
    values.push_back(error_in(evidence, with_terms(3), type) / native_error(evidence, type));
  return agrees_if(
      most(values) < 10,
      fmt::format(
          "{:.3g}, {:.3g}, {:.3g} times native fp32's error on types 1, 2, 3; errors {:.2g}, {:.2g}, {:.2g}",
          values[0], values[1], values[2], error_in(evidence, with_terms(3), "type1"),
          error_in(evidence, with_terms(3), "type2"), error_in(evidence, with_terms(3), "type3")),
      "Below 2^-14 the high slice of an unscaled split is subnormal, and below 2^-24 it is 0. A residual "
      "times 2^11 then keeps 11 bits from 2^-25 on and none from 2^-36 on. Types 2 and 3 reach down to "
      "2^-35: their sums live on the largest elements, but native fp32 has all 24 bits there. With rows and "
      "columns scaled the same three products reach it.");
}

Answer type_four_fails(const Evidence& evidence) {
  const double error = error_in(evidence, with_terms(3), "type4");
  return agrees_if(error > 0.5, fmt::format("mean relative error {:.2g} on type4", error),
                   "type 4 is no failure");
}

Answer slices_reach_fp32(const Evidence& evidence) {
  std::vector<std::string> texts;
  double last = 0;
  for (int slices = 1; slices <= 4; ++slices) {
    last = error_in(evidence, with_slices(slices, "fp16", 11, unit_length), "type1") /
           native_error(evidence, "type1");
    texts.push_back(fmt::format("{:.2g}", last));
  }
  return agrees_if(last < 2,
                   fmt::format("{}, {}, {}, {} times native fp32's error with 1 to 4 slices, type1", texts[0],
                               texts[1], texts[2], texts[3]),
                   "the sums outside, in fp32, decide");
}

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
          {{"More terms always improve the result (types 1 to 3)", "always", more_terms_help},
           {"At least three terms are needed to almost reach fp32",
            "three (agrees: within 3 times native on type1, two terms beyond 10)", three_terms_needed},
           {"Three terms are enough for elements no smaller than type 3's",
            "a good approximation (agrees: within 10 times native's error)", enough_down_to_type_three},
           {"Type 4 is beyond them", "implied", type_four_fails},
           {"More slices come to fp32's accuracy",
            "implied by the general scheme (agrees: within 2 times native's error)", slices_reach_fp32}}};
}

double fp64_ratio(const Evidence& evidence, const std::string& scheme, const char* accumulator) {
  return mean(ratios(
      evidence.pairs({scheme, "reference", accumulator}, native, exact_error, in_distribution("uniform"))));
}

// The study gives no accuracy for fp64.
Answer fp64_errors(const Evidence& evidence, const char* format, const char* accumulator, int scale,
                   int block, int slices) {
  std::string text;
  for (int i = 1; i <= slices; ++i)
    text += fmt::format("{}{:.2g}", i == 1 ? "" : ", ",
                        fp64_ratio(evidence, with_slices(i, format, scale, block), accumulator));
  return undecidable(fmt::format("{} times native fp64's error with 1 to {} slices", text, slices),
                     "The study tried fp64 and gives no figure. Here each product is summed in fp32, inside "
                     "the engine and between its blocks, before it is cast to fp64 and added. The largest "
                     "product's sum keeps 24 bits, however many slices follow: only products summed without "
                     "an error, such as integers on a grid (Ozaki), get beyond.");
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
          {{"fp64 operands are approximated with fp32 slices", "not given",
            [](const Evidence& evidence) { return fp64_errors(evidence, "fp32", "fp32", 24, 0, 4); }},
           {"fp64 operands are approximated with fp16 slices", "not given", [](const Evidence& evidence) {
              return fp64_errors(evidence, "fp16", "a100", 11, unit_length, 6);
            }}}};
}

}  // namespace

std::vector<PaperFigure> study_figures() { return {types_figure(), terms_figure(), fp64_figure()}; }

}  // namespace kintsugi::tools
