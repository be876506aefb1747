// h2sgemm Figs. 8 and 9.
#include <algorithm>
#include <cmath>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";

const std::string term_0 = "h2sgemm:sb=0";
const std::string term_6 = "h2sgemm:sb=6";
const std::string term_12 = "h2sgemm:sb=12";
const std::string element_0 = "h2sgemm-element:sb=0";
const std::string element_6 = "h2sgemm-element:sb=6";
const std::string element_12 = "h2sgemm-element:sb=12";
const std::string native = "native";

// Both round to nearest, as the paper's NPU does, of which there is no model; SGEMM's sums are of the same
// kind.
struct Sums {
  std::string name;
  std::string engine;
};
const std::vector<Sums> kinds_of_sums{{"sequential sums", "reference"}, {"OpenBLAS's sums", "cpu"}};

Way way_of(const Sums& sums, const std::string& scheme) {
  return {scheme, sums.engine, scheme == native ? "" : "fp32"};
}

// Element by element, the paper adds in FP32 outside of the unit (Algorithm 1), as the accumulator fp32 did
// up to this commit; since then it adds in FP64 there (CHANGELOG, Bits), and rows of the element-wise order
// are not the paper's.
constexpr const char* last_with_fp32_outside = "663a57e2e5d6";

bool adds_as_the_paper(const Json& row) {
  return !cell(row, "scheme").starts_with("h2sgemm-element") || cell(row, "accumulator") != "fp32" ||
         cell(row, "commit") == last_with_fp32_outside;
}

// Fig. 8 (a) and (b).
struct Inputs {
  std::string name;
  std::string distribution;
};
const std::vector<Inputs> all_inputs{{"symmetric", "offset"}, {"non-negative", "offset-nonnegative"}};

using Value = std::function<std::vector<double>(const Sums& sums, const Inputs& inputs)>;

Measured by_inputs_and_sums(const std::string& before, const Value& values) {
  Measured measured;
  for (const Sums& sums : kinds_of_sums) {
    for (const Inputs& inputs : all_inputs)
      measured.push_back({before + inputs.name + ", " + sums.name, values(sums, inputs)});
  }
  return measured;
}

// Errors of the schemes over those of the schemes beside them, at these offset exponents.
using SchemePairs = std::vector<std::pair<std::string, std::string>>;

std::function<Measured(const Evidence&)> ratios_of(const SchemePairs& schemes, double least_offset,
                                                   double most_offset) {
  return [=](const Evidence& evidence) {
    return by_inputs_and_sums("", [&](const Sums& sums, const Inputs& inputs) {
      std::vector<double> values;
      for (const auto& [one, other] : schemes) {
        const auto found = ratios(evidence.pairs(
            way_of(sums, one), way_of(sums, other), frobenius,
            both(adds_as_the_paper, with_parameter(inputs.distribution, least_offset, most_offset))));
        values.insert(values.end(), found.begin(), found.end());
      }
      return values;
    });
  };
}

Measured half_precision(const Evidence& evidence) {
  return by_inputs_and_sums("", [&](const Sums& sums, const Inputs& inputs) {
    return evidence.errors(way_of(sums, "fp16"), frobenius, with_parameter(inputs.distribution, -20, 0));
  });
}

Measured orders_on_h200(const Evidence& evidence) {
  Measured measured;
  for (const Inputs& inputs : all_inputs)
    measured.push_back(
        {inputs.name, ratios(evidence.pairs({term_12, "reference", "h200"}, {element_12, "reference", "h200"},
                                            frobenius, with_parameter(inputs.distribution, -12, 0)))});
  return measured;
}

PaperSweep fig8_sweep() {
  std::vector<std::string> distributions;
  for (const Inputs& inputs : all_inputs) {
    for (const int offset : {-20, -16, -12, -10, -8, -6, -4, -2, 0})
      distributions.push_back(fmt::format("{}:{}", inputs.distribution, offset));
  }
  return {"",
          {{"schemes", {"fp16", term_0, term_6, term_12, element_0, element_6, element_12, native}},
           {"engines", {"reference", "cpu"}},
           {"accumulators", {"fp32"}},
           {"distributions", distributions},
           {"shapes", {"64x64x2816"}}}};
}

PaperSweep fig8_tensor_cores() {
  return {"h200",
          {{"schemes", {term_12, element_12, native}},
           {"engines", {"reference"}},
           {"accumulators", {"h200"}},
           {"distributions",
            {"offset:-12", "offset:-8", "offset:-4", "offset:0", "offset-nonnegative:-12",
             "offset-nonnegative:-8", "offset-nonnegative:-4", "offset-nonnegative:0"}},
           {"shapes", {"64x64x2816"}}}};
}

const char* const alike_sums =
    "The sum of hi hi makes nearly all of the error, and it is added as SGEMM is: the two differ by a few "
    "hundredths, to either side. Adding the small terms first does not change that.";
const char* const order_of_sums =
    "With sequential sums the term-wise order adds all of k in the unit, one product after the other, and "
    "the "
    "element-wise order leaves it every 16 and adds outside: far fewer roundings at the size of the whole "
    "sum. "
    "OpenBLAS adds k in partial sums, and there the term-wise order gains.";

std::vector<Claim> fig8_claims() {
  return {{"h2sgemm-fig8-hgemm", half_precision,
           "Elements of one sign cancel nothing, so that the same product errs by 6e-6; below -14 fp16's own "
           "numbers have "
           "fewer bits."},
          {"h2sgemm-fig8-largest", ratios_of({{term_0, "fp16"},
                                              {term_6, "fp16"},
                                              {term_12, "fp16"},
                                              {element_0, "fp16"},
                                              {element_6, "fp16"},
                                              {element_12, "fp16"},
                                              {native, "fp16"}},
                                             -20, 0)},
          {"h2sgemm-fig8-alike", ratios_of({{term_0, element_0}}, -20, 0)},
          {"h2sgemm-fig8-near-0", ratios_of({{term_0, element_0}}, -2, 0), order_of_sums},
          {"h2sgemm-fig8-unscaled", ratios_of({{term_0, native}, {element_0, native}}, -20, 0),
           "Near offset exponent 0 the low slices hold nearly all their bits without a scale (h2sgemm-fig2), "
           "and sb = 0 "
           "errs there as sb = 12 does."},
          {"h2sgemm-fig8-gain", ratios_of({{term_0, term_12}, {element_0, element_12}}, -12, -8),
           "The gain grows by a factor of four with two exponents and passes through 10 to 100."},
          {"h2sgemm-fig8-six", ratios_of({{term_6, term_12}, {element_6, element_12}}, -12, -10)},
          {"h2sgemm-fig8-element", ratios_of({{element_12, native}}, -12, 0)},
          {"h2sgemm-fig8-term", ratios_of({{term_12, native}}, -12, -8), alike_sums},
          {"h2sgemm-fig8-order", ratios_of({{term_12, element_12}}, -12, 0), order_of_sums},
          {"own-order-h200", orders_on_h200,
           "A tensor core truncates. Term by term, all of k is summed in it, and the truncations add up with "
           "one sign; "
           "element by element, sums leave it every 16 and are added outside to nearest."},
          {"own-below-window", ratios_of({{term_12, native}, {element_12, native}}, -20, -16),
           "Below 2^-14 the high slice is subnormal, and the scaled low one holds less than what it lost."}};
}

PaperFigure fig8() {
  return {"h2sgemm-fig8",
          "h2sgemm",
          "Fig. 8, section 4.1",
          "error against the offset exponent",
          "sequential FP32 sums (engine reference) and OpenBLAS's (engine cpu) for the paper's NPU, of which "
          "there is no "
          "model, SGEMM's being of the same kind; the element-wise order with sums added in FP32 outside; "
          "the H200 model "
          "beside them; 64 x 64 entries at k = 64 x 44",
          {fig8_sweep(), fig8_tensor_cores()},
          {{"parameter of the distribution"}, {frobenius}},
          fig8_claims()};
}

// ------------------------------------------------------------------ Fig. 9

struct Sizes {
  std::string name;
  Filter filter;
};

bool is_square(const Json& row) {
  const Json& problem = row.at("problem");
  return problem.at("m") == problem.at("n");
}

// Fig. 9 (b) and (c).
const std::vector<Sizes> growing_sizes{
    {"by k", [](const Json& row) { return row.at("problem").at("n") == 32 && !is_square(row); }},
    {"all sizes", [](const Json& row) {
       return is_square(row) && row.at("problem").at("m") == row.at("problem").at("k");
     }}};

Filter at_offset_0(const Inputs& inputs, const Filter& filter) {
  return both(adds_as_the_paper, both(in_distribution(inputs.distribution + ":0"), filter));
}

Measured stable_in_size(const Evidence& evidence) {
  const Filter same_k = [](const Json& row) { return is_square(row) && row.at("problem").at("k") == 2816; };
  Measured measured;
  for (const auto& [name, scheme] :
       {std::pair{"term-wise", term_12}, std::pair{"element-wise", element_12}, std::pair{"SGEMM", native}}) {
    const auto part =
        by_inputs_and_sums(std::string(name) + ", ", [&](const Sums& sums, const Inputs& inputs) {
          return evidence.errors(way_of(sums, scheme), frobenius, at_offset_0(inputs, same_k));
        });
    measured.insert(measured.end(), part.begin(), part.end());
  }
  return measured;
}

using SizeValue = std::function<double(const Evidence& evidence, const Sums& sums, const Filter& filter)>;

std::function<Measured(const Evidence&)> by_growing_sizes(const SizeValue& value) {
  return [=](const Evidence& evidence) {
    Measured measured;
    for (const Sizes& sizes : growing_sizes) {
      const auto part = by_inputs_and_sums(sizes.name + ", ", [&](const Sums& sums, const Inputs& inputs) {
        return std::vector<double>{value(evidence, sums, at_offset_0(inputs, sizes.filter))};
      });
      measured.insert(measured.end(), part.begin(), part.end());
    }
    return measured;
  };
}

double growth(const Evidence& evidence, const Way& way, const Filter& filter) {
  const auto errors = evidence.errors(way, frobenius, filter);
  return errors.back() / errors.front();
}

SizeValue growth_over(const std::string& other) {
  return [=](const Evidence& evidence, const Sums& sums, const Filter& filter) {
    return growth(evidence, way_of(sums, term_12), filter) / growth(evidence, way_of(sums, other), filter);
  };
}

double last_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  return ratios(evidence.pairs(way_of(sums, term_12), way_of(sums, native), frobenius, filter)).back();
}

PaperFigure fig9() {
  return {"h2sgemm-fig9",
          "h2sgemm",
          "Fig. 9, section 4.1",
          "error against the sizes",
          "offset exponent 0; (a) m = n at k = 64 x 44, (b) k at m = 176, n = 32, (c) m = n = k; sizes up to "
          "what two cores allow; sums as in Fig. 8",
          {{"",
            {{"schemes", {term_0, term_12, element_12, native}},
             {"engines", {"reference", "cpu"}},
             {"accumulators", {"fp32"}},
             {"distributions", {"offset:0", "offset-nonnegative:0"}},
             {"shapes",
              {"32x32x2816", "64x64x2816", "128x128x2816", "256x256x2816", "176x32x64", "176x32x256",
               "176x32x704", "176x32x2816", "176x32x11264", "64x64x64", "128x128x128", "256x256x256",
               "512x512x512"}}}}},
          {{"k", "m = n", "m = n = k"}, {frobenius}, 4},
          {{"h2sgemm-fig9-stable", stable_in_size},
           {"h2sgemm-fig9-growth-element", by_growing_sizes(growth_over(element_12)), order_of_sums},
           {"h2sgemm-fig9-growth-sgemm", by_growing_sizes(growth_over(native)), alike_sums},
           {"h2sgemm-fig9-lower", by_growing_sizes(last_over_sgemm), alike_sums}}};
}

}  // namespace

std::vector<PaperFigure> h2sgemm_figures() { return {fig8(), fig9()}; }

}  // namespace kintsugi::tools
