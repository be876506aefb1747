// h2sgemm Fig. 8: errors against the offset exponent.
#include "lab/reproduce/papers/h2sgemm.hpp"
#include "lab/reproduce/product_errors.hpp"

namespace kintsugi::tools {

using namespace h2sgemm;

namespace {

// Pairs of schemes; errors of the first are divided by errors of the second.
using SchemePairs = std::vector<std::pair<std::string, std::string>>;
// Returns the pairs that a claim compares, with the element-wise scheme of a way to add partial sums outside.
using PairsFor = SchemePairs (*)(const OutsideSums& way);

std::vector<double> pair_ratios(const Evidence& evidence, const SchemePairs& schemes, const Sums& sums,
                                const Filter& filter) {
  std::vector<double> values;
  for (const auto& [dividend, divisor] : schemes) {
    const auto found = ratios(evidence.pairs(method_of(sums, dividend), method_of(sums, divisor), frobenius,
                                             both(of_sweeps(), filter)));
    values.insert(values.end(), found.begin(), found.end());
  }
  return values;
}

Filter at_offsets(const Inputs& inputs, double min, double max) {
  return with_parameter(inputs.distribution, min, max);
}

// Returns a series for each kind of sums, way to add partial sums outside, and inputs, over all offset
// exponents from `min` to `max`.
std::function<Measured(const Evidence&)> by_way(PairsFor schemes, const std::vector<Sums>& kinds, double min,
                                                double max) {
  return [=](const Evidence& evidence) {
    Measured measured;
    for (const Sums& sums : kinds) {
      for (const OutsideSums& way : ways_outside) {
        for (const Inputs& inputs : all_inputs)
          measured.push_back(
              {fmt::format("{}, {}, {}", inputs.name, sums.name, way.name),
               pair_ratios(evidence, schemes(way), sums, both(way.rows, at_offsets(inputs, min, max)))});
      }
    }
    return measured;
  };
}

// Returns a series for each kind of sums, offset exponent and inputs. Partial sums of the element-wise order
// are added outside in FP32, every 16 inner indices.
std::function<Measured(const Evidence&)> by_offset(PairsFor schemes, const std::vector<Sums>& kinds,
                                                   const std::vector<int>& offsets) {
  return [=](const Evidence& evidence) {
    Measured measured;
    for (const Sums& sums : kinds) {
      for (const int offset : offsets) {
        for (const Inputs& inputs : all_inputs)
          measured.push_back({fmt::format("{}, {}, offset {}", inputs.name, sums.name, offset),
                              pair_ratios(evidence, schemes(fp32_every_16), sums,
                                          both(fp32_every_16.rows, at_offsets(inputs, offset, offset)))});
      }
    }
    return measured;
  };
}

// Returns the errors of all other schemes over those of fp16, a series for each kind of sums and inputs.
Measured over_fp16(const Evidence& evidence) {
  Measured measured;
  for (const Sums& sums : sums_over_sgemm) {
    for (const Inputs& inputs : all_inputs) {
      const Filter range = at_offsets(inputs, -20, 0);
      auto values = pair_ratios(evidence, {{term_0, fp16}, {term_6, fp16}, {term_12, fp16}, {native, fp16}},
                                sums, range);
      for (const OutsideSums& way : ways_outside) {
        const auto more =
            pair_ratios(evidence, {{way.scheme(0), fp16}, {way.scheme(6), fp16}, {way.scheme(12), fp16}},
                        sums, both(way.rows, range));
        values.insert(values.end(), more.begin(), more.end());
      }
      measured.push_back({inputs.name + ", " + sums.name, values});
    }
  }
  return measured;
}

Filter with_fp16_output() {
  return [](const Json& row) { return cell(row, "output") == "fp16"; };
}

// Returns HGEMM's errors for several choices of the smallest offset exponent. Results rounded to FP16 exist
// for sequential sums only.
Measured half_precision(const Evidence& evidence) {
  Measured measured;
  const auto add = [&](const Sums& sums, const std::string& output, const Filter& rows) {
    for (const int min : {-20, -12, -8}) {
      for (const Inputs& inputs : all_inputs)
        measured.push_back(
            {fmt::format("{}, {}, {} results, offsets from {}", inputs.name, sums.name, output, min),
             evidence.errors(method_of(sums, fp16), frobenius, both(rows, at_offsets(inputs, min, 0)))});
    }
  };
  for (const Sums& sums : kinds_of_sums) add(sums, "FP32", of_sweeps());
  add(kinds_of_sums.front(), "FP16", with_fp16_output());
  return measured;
}

// Returns the term-wise order's errors over the element-wise order's, on the H200's model.
Measured orders_on_h200(const Evidence& evidence) {
  Measured measured;
  for (const Inputs& inputs : all_inputs)
    measured.push_back({inputs.name, ratios(evidence.pairs({term_12, "reference", "h200"},
                                                           {element_wise(12), "reference", "h200"}, frobenius,
                                                           at_offsets(inputs, -12, 0)))});
  return measured;
}

// Returns the errors of both orders over SGEMM's for inputs whose high slices are subnormal.
Measured below_window(const Evidence& evidence) {
  Measured measured;
  for (const Sums& sums : kinds_of_sums) {
    for (const Inputs& inputs : all_inputs)
      measured.push_back({inputs.name + ", " + sums.name,
                          pair_ratios(evidence, {{term_12, native}, {element_wise(12), native}}, sums,
                                      both(fp32_every_16.rows, at_offsets(inputs, -20, -16)))});
  }
  return measured;
}

std::vector<std::string> fig8_distributions() {
  std::vector<std::string> distributions;
  for (const Inputs& inputs : all_inputs) {
    for (const int offset : {-20, -16, -12, -10, -8, -6, -4, -2, 0})
      distributions.push_back(fmt::format("{}:{}", inputs.distribution, offset));
  }
  return distributions;
}

PaperSweep fig8_sweep() {
  return {
      .name = "",
      .lists = {{"schemes",
                 {fp16, term_0, term_6, term_12, element_wise(0), element_wise(6), element_wise(12), native}},
                {"engines", {"reference", "cpu"}},
                {"accumulators", {"fp32"}},
                {"distributions", fig8_distributions()},
                {"shapes", {"64x64x2816"}}}};
}

// Returns the sweep of a program that adds partial sums outside in FP64, as all do since commit 663a57e.
PaperSweep fig8_fp64_outside() {
  return {.name = "places",
          .lists = {{"schemes",
                     {element_wise(0), element_wise(6), element_wise(12), outside_every_64(0),
                      outside_every_64(6), outside_every_64(12)}},
                    {"engines", {"reference", "cpu"}},
                    {"accumulators", {"fp32"}},
                    {"distributions", fig8_distributions()},
                    {"shapes", {"64x64x2816"}}}};
}

Analysis fig8_half_results() {
  ProductErrors study;
  study.schemes = {fp16};
  study.methods = {{"", "reference", "fp32"}};
  study.distributions = fig8_distributions();
  study.shapes = {{64, 64, 2816}};
  study.seeds = {1};
  study.fp16_output = true;
  return {.format = "product-errors",
          .make_document = [=](bool quick) { return product_errors({study}, quick); },
          .name = "half-results"};
}

PaperSweep fig8_tensor_cores() {
  return {.name = "h200",
          .lists = {{"schemes", {term_12, element_wise(12), native}},
                    {"engines", {"reference"}},
                    {"accumulators", {"h200"}},
                    {"distributions",
                     {"offset:-12", "offset:-8", "offset:-4", "offset:0", "offset-nonnegative:-12",
                      "offset-nonnegative:-8", "offset-nonnegative:-4", "offset-nonnegative:0"}},
                    {"shapes", {"64x64x2816"}}}};
}

SchemePairs term_over_element(const OutsideSums& way) { return {{term_0, way.scheme(0)}}; }
SchemePairs term_over_element_12(const OutsideSums& way) { return {{term_12, way.scheme(12)}}; }
SchemePairs unscaled_over_sgemm(const OutsideSums& way) {
  return {{term_0, native}, {way.scheme(0), native}};
}
SchemePairs unscaled_over_scaled(const OutsideSums& way) {
  return {{term_0, term_12}, {way.scheme(0), way.scheme(12)}};
}
SchemePairs six_over_twelve(const OutsideSums& way) {
  return {{term_6, term_12}, {way.scheme(6), way.scheme(12)}};
}
SchemePairs element_over_sgemm(const OutsideSums& way) { return {{way.scheme(12), native}}; }
SchemePairs term_over_sgemm(const OutsideSums&) { return {{term_12, native}}; }

std::vector<Claim> fig8_claims() {
  return {{"h2sgemm-fig8-hgemm", half_precision,
           "Elements of one sign cancel nothing, so that the same product errs by 6e-6 before its result "
           "is rounded to FP16; below -14 fp16's own numbers have fewer bits."},
          {"h2sgemm-fig8-largest", over_fp16},
          {"h2sgemm-fig8-alike", by_way(term_over_element, kinds_of_sums, -20, 0), order_of_sums},
          {"h2sgemm-fig8-near-0", by_way(term_over_element, kinds_of_sums, -2, 0), order_of_sums},
          {"h2sgemm-fig8-unscaled", by_way(unscaled_over_sgemm, sums_over_sgemm, -20, 0),
           "Near offset exponent 0 the low slices hold nearly all their bits without a scale "
           "(h2sgemm-fig2), and sb = 0 errs there as sb = 12 does."},
          {"h2sgemm-fig8-gain", by_offset(unscaled_over_scaled, kinds_of_sums, {-12, -10, -8}),
           "The gain grows by a factor of four with two exponents and passes through 10 to 100."},
          {"h2sgemm-fig8-six", by_offset(six_over_twelve, kinds_of_sums, {-16, -12, -10})},
          {"h2sgemm-fig8-element", by_way(element_over_sgemm, sums_over_sgemm, -12, 0), order_of_sums},
          {"h2sgemm-fig8-term", by_offset(term_over_sgemm, sums_over_sgemm, {-12, -10, -8}), alike_sums},
          {"h2sgemm-fig8-order", by_way(term_over_element_12, kinds_of_sums, -12, 0), order_of_sums},
          {"own-order-h200", orders_on_h200,
           "A tensor core truncates. Term by term, all of k is summed in it, and the truncations add up "
           "with one sign; element by element, sums leave it every 16 and are added outside to nearest."},
          {"own-below-window", below_window,
           "Below 2^-14 the high slice is subnormal, and the scaled low one holds less than what it lost."}};
}

PaperFigure fig8() {
  PaperFigure figure{
      .name = "h2sgemm-fig8",
      .paper = "h2sgemm",
      .place = "Fig. 8, section 4.1",
      .subject = "error against the offset exponent",
      .conditions =
          "sequential FP32 sums (engine reference) and OpenBLAS's (engine cpu) for the paper's "
          "NPU, of which there is no model, SGEMM's being of the same kind; element by element "
          "sums leave the unit every 16 and are added in FP32, rows of commit 663a57e, or in "
          "FP64, or leave it every 64; the H200 model beside them; 64 x 64 elements at k = 64 "
          "x 44",
      .sweeps = {fig8_sweep(), fig8_fp64_outside(), fig8_tensor_cores()},
      .drawn = {.dimensions = {"parameter of the distribution"}, .measures = {frobenius}},
      .claims = fig8_claims()};
  figure.analysis = fig8_half_results();
  return figure;
}

}  // namespace

std::vector<PaperFigure> h2sgemm_figures() { return {fig8(), h2sgemm_sizes_figure()}; }

}  // namespace kintsugi::tools
