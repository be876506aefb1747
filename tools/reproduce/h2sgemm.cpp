// h2sgemm Figs. 8 and 9.
#include <algorithm>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const Way sgemm{"native", "cpu", ""};

Way on_cpu(const std::string& scheme) { return {scheme, "cpu", "fp32"}; }
Way on_sequential(const std::string& scheme) { return {scheme, "reference", "fp32"}; }
Way on_h200(const std::string& scheme) { return {scheme, "reference", "h200"}; }

const std::string term_12 = "h2sgemm:sb=12";
const std::string element_12 = "h2sgemm-element:sb=12";

Filter symmetric(double least, double most) { return with_parameter("offset", least, most); }

std::string of_native(const std::vector<double>& values) {
  return range_text(values) + " times SGEMM's error";
}

Answer half_precision(const Evidence& evidence) {
  const auto errors = evidence.errors(on_cpu("fp16"), frobenius, symmetric(-8, 0));
  return agrees_if(least(errors) > 3e-5 && most(errors) < 1e-3, range_text(errors), "it is of another order");
}

Answer unscaled_is_worse(const Evidence& evidence) {
  std::vector<double> values;
  for (const char* scheme : {"h2sgemm:sb=0", "h2sgemm-element:sb=0"}) {
    for (const double ratio : ratios(evidence.pairs(on_cpu(scheme), sgemm, frobenius, symmetric(-12, 0))))
      values.push_back(ratio);
  }
  return agrees_if(
      least(values) > 1, of_native(values),
      "Near offset exponent 0 the low slices hold nearly all their bits without a scale, and products of "
      "slices of "
      "11 bits have 22, so that the first additions of hi hi are exact, as SGEMM's are not. At -4 and below "
      "sb = 0 is worse, as claimed.");
}

// Of the errors of `scheme` over those of sb = 12, term-wise, at offsets -12 to -6.
std::vector<double> over_twelve(const Evidence& evidence, const char* scheme) {
  return ratios(evidence.pairs(on_cpu(scheme), on_cpu(term_12), frobenius, symmetric(-12, -6)));
}

std::string by_offset(const std::vector<double>& values) {
  return fmt::format("{:.3g}, {:.3g}, {:.3g}, {:.3g} times at offsets -12, -10, -8, -6", values.at(0),
                     values.at(1), values.at(2), values.at(3));
}

Answer gain_of_scaling(const Evidence& evidence) {
  const auto values = over_twelve(evidence, "h2sgemm:sb=0");
  return agrees_if(values.at(1) > 10 && values.at(2) > 10, by_offset(values), "the gain is less than ten");
}

Answer six_is_too_few(const Evidence& evidence) {
  const auto values = over_twelve(evidence, "h2sgemm:sb=6");
  return agrees_if(values.at(0) > 2, by_offset(values),
                   "sb = 6 is nearly as good, since it loses no more bits there "
                   "than the sum of all k");
}

Answer element_is_like_sgemm(const Evidence& evidence) {
  const auto values = ratios(evidence.pairs(on_cpu(element_12), sgemm, frobenius, symmetric(-12, 0)));
  return agrees_if(least(values) > 0.33 && most(values) < 3, of_native(values),
                   "Our element-wise order leaves the engine every 16 inner indices and adds outside in "
                   "fp32, one after the other, "
                   "which costs about what sequential fp32 costs; OpenBLAS adds in many partial sums");
}

Answer term_beats_sgemm(const Evidence& evidence) {
  const auto values = ratios(evidence.pairs(on_cpu(term_12), sgemm, frobenius, symmetric(-12, -4)));
  return agrees_if(most(values) <= 1, of_native(values) + ", offsets -12 to -4",
                   "Both add hi hi in the same order, so the term-wise sum cannot err less than that part of "
                   "SGEMM; the split and "
                   "the two further sums come on top. Below -12 the product of the two low slices, left out, "
                   "weighs more.");
}

Answer term_is_no_worse(const Evidence& evidence, const Way& term, const Way& element,
                        const std::string& reason) {
  const auto values = ratios(evidence.pairs(term, element, frobenius, everywhere()));
  return agrees_if(most(values) <= 1.02, range_text(values) + " times the element-wise error", reason);
}

Answer term_on_cpu(const Evidence& evidence) {
  return term_is_no_worse(evidence, on_cpu(term_12), on_cpu(element_12),
                          "with OpenBLAS's sums the term-wise order is worse somewhere");
}

Answer term_on_sequential(const Evidence& evidence) {
  return term_is_no_worse(evidence, on_sequential(term_12), on_sequential(element_12),
                          "Term by term, each sum runs over all of k in the unit, one product after the "
                          "other. Element by element, sums "
                          "leave it every 16 and are added outside: far fewer roundings at the size of the "
                          "whole sum. The engine cpu adds "
                          "all of k in many partial sums, and there the order is the paper's.");
}

Answer term_on_h200(const Evidence& evidence) {
  return term_is_no_worse(
      evidence, on_h200(term_12), on_h200(element_12),
      "A tensor core truncates. Term by term, all of k is summed in it, and the truncations add up with one "
      "sign; "
      "element by element, sums leave it every 16 and are added outside to nearest. The paper's chip rounds "
      "to "
      "nearest, so that its claim stands for chips like it; with OpenBLAS's sums the order is the paper's.");
}

Answer grows_slower(const Evidence& evidence) {
  const Filter deep = [](const Json& row) { return row.at("problem").at("n") == 32; };
  const auto growth = [&](const Way& way) {
    const auto errors = evidence.errors(way, frobenius, both(deep, in_distribution("offset-nonnegative:0")));
    return errors.back() / errors.front();
  };
  const double ours = growth(on_cpu(term_12));
  const double element = growth(on_cpu(element_12));
  const double native = growth(sgemm);
  return agrees_if(
      ours <= 1.02 * element && ours <= 1.02 * native,
      fmt::format(
          "from the least k to the largest, non-negative: term-wise x {:.2g}, element-wise x {:.2g}, SGEMM "
          "x {:.2g}",
          ours, element, native),
      "The term-wise sum of hi hi is SGEMM's own sum on rounded operands and grows like it");
}

Answer stable_in_size(const Evidence& evidence) {
  constexpr int fixed_k = 2816;
  const Filter same_k = [&evidence](const Json& row) {
    const Json& problem = row.at("problem");
    return problem.at("m") == problem.at("n") &&
           problem.at("k") == std::min<double>(fixed_k, evidence.largest_k());
  };
  const auto errors = evidence.errors(on_cpu(term_12), frobenius, both(in_distribution("offset:0"), same_k));
  return agrees_if(most(errors) < 1.2 * least(errors), range_text(errors), "the error changes with m and n");
}

PaperSweep fig8_sweep() {
  return {
      "",
      {{"schemes",
        {"fp16", "h2sgemm:sb=0", "h2sgemm:sb=6", term_12, "h2sgemm-element:sb=0", "h2sgemm-element:sb=6",
         element_12, "native"}},
       {"engines", {"reference", "cpu"}},
       {"accumulators", {"fp32"}},
       {"distributions",
        {"offset:-20", "offset:-16", "offset:-12", "offset:-10", "offset:-8", "offset:-6", "offset:-4",
         "offset:-2", "offset:0", "offset-nonnegative:-20", "offset-nonnegative:-16",
         "offset-nonnegative:-12", "offset-nonnegative:-10", "offset-nonnegative:-8", "offset-nonnegative:-6",
         "offset-nonnegative:-4", "offset-nonnegative:-2", "offset-nonnegative:0"}},
       {"shapes", {"64x64x2816"}}}};
}

PaperSweep fig8_tensor_cores() {
  return {"h200",
          {{"schemes", {term_12, element_12, "native"}},
           {"engines", {"reference"}},
           {"accumulators", {"h200"}},
           {"distributions",
            {"offset:-12", "offset:-8", "offset:-4", "offset:0", "offset-nonnegative:-12",
             "offset-nonnegative:-8", "offset-nonnegative:-4", "offset-nonnegative:0"}},
           {"shapes", {"64x64x2816"}}}};
}

PaperFigure fig8() {
  return {
      "h2sgemm-fig8",
      "h2sgemm",
      "Fig. 8, section 4.1",
      "error against the offset exponent",
      "OpenBLAS's SGEMM stands for the paper's; the engine cpu, whose sums are OpenBLAS's, and sequential "
      "fp32 for "
      "its NPU, of which there is no model; 64 x 64 entries at k = 64 x 44",
      {fig8_sweep(), fig8_tensor_cores()},
      {{"parameter of the distribution"}, {frobenius}},
      {{"A product of fp16 alone errs by 1e-4", "1e-4", half_precision},
       {"Without a scale both orders err more than SGEMM", "higher", unscaled_is_worse},
       {"sb = 12 errs one to two orders less than sb = 0 at low exponents", "10 to 100 times",
        gain_of_scaling},
       {"sb = 6 performs poorly", "poor", six_is_too_few},
       {"With sb = 12 the element-wise order is as accurate as SGEMM", "comparable", element_is_like_sgemm},
       {"With sb = 12 the term-wise order is better than SGEMM at small exponents", "better",
        term_beats_sgemm},
       {"The term-wise order is no worse than the element-wise (sums of OpenBLAS)", "no worse", term_on_cpu},
       {"The same, each term's sum one after the other in fp32", "no worse", term_on_sequential},
       {"The same on the H200 model", "no worse", term_on_h200}}};
}

PaperFigure fig9() {
  return {"h2sgemm-fig9",
          "h2sgemm",
          "Fig. 9, section 4.1",
          "error against the sizes",
          "offset exponent 0; (a) m = n at k = 64 x 44, (b) k at m = 176, n = 32, (c) m = n = k; sizes up to "
          "what two "
          "cores allow",
          {{"",
            {{"schemes", {"h2sgemm:sb=0", term_12, element_12, "native"}},
             {"engines", {"reference", "cpu"}},
             {"accumulators", {"fp32"}},
             {"distributions", {"offset:0", "offset-nonnegative:0"}},
             {"shapes",
              {"32x32x2816", "64x64x2816", "128x128x2816", "256x256x2816", "176x32x64", "176x32x256",
               "176x32x704", "176x32x2816", "176x32x11264", "64x64x64", "128x128x128", "256x256x256",
               "512x512x512"}}}}},
          {{"k", "m = n", "m = n = k"}, {frobenius}, 4},
          {{"The error does not depend on m and n", "stable", stable_in_size},
           {"As k grows, the term-wise order's error grows less than SGEMM's and the element-wise order's",
            "grows less", grows_slower}}};
}

}  // namespace

std::vector<PaperFigure> h2sgemm_figures() { return {fig8(), fig9()}; }

}  // namespace kintsugi::tools
