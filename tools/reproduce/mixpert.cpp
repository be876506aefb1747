// mixpert Fig. 2: the errors.
#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const Way cublas{"native", "reference", ""};
const std::string uniform = "uniform";

Way on_a100(const std::string& scheme) { return {scheme, "reference", "a100"}; }
Way on_int32(const std::string& scheme) { return {scheme, "reference", "int32"}; }

double mean_error(const Evidence& evidence, const Way& way) {
  return mean(evidence.errors(way, frobenius, in_distribution(uniform)));
}

Answer near(double ours, double theirs, const std::string& text, const std::string& reason) {
  return agrees_if(ours > theirs / 3 && ours < theirs * 3, text, reason);
}

Answer ape(const Evidence& evidence) {
  const double six = mean_error(evidence, on_a100("bf16x6"));
  const double three = mean_error(evidence, on_a100("bf16x3"));
  const double one = mean_error(evidence, on_a100("bf16"));
  return near(
      six, 9.85e-5, fmt::format("{:.2g} (bf16x6); three products {:.2g}, one {:.2g}", six, three, one),
      "Six exact products of three bf16 slices leave 2^-24 of an operand, and the A100's accumulator is "
      "fp32: "
      "bf16 has no cumulative error of its own. 9.85e-5 lies between our three products and a single one, so "
      "what was measured did not keep the third slice, or did not add in fp32.");
}

Answer tf32x3_beats_native(const Evidence& evidence) {
  const auto values = ratios(evidence.pairs(on_a100("tf32x3"), cublas, frobenius, in_distribution(uniform)));
  return agrees_if(
      most(values) < 1, range_text(values) + " times native fp32's error",
      "On the A100's model all of k is summed in the unit, which truncates; the truncations add up with "
      "k. CUTLASS leaves the unit more often, and its high slice is truncated where ours is rounded. "
      "Our native product adds one after the other; cuBLAS in several partial sums.");
}

Answer quantised_twice(const Evidence& evidence) {
  const double ours = mean_error(evidence, on_int32("quantensor:slices=2"));
  return near(ours, 6.76e-5,
              fmt::format("{:.2g}; {:.2g} with one slice", ours,
                          mean_error(evidence, on_int32("quantensor:slices=1"))),
              "ours scales by powers of two, theirs by max / 127, which is worth up to one bit a slice; the "
              "distribution of the paper's matrices is not given");
}

Answer quantised_thrice(const Evidence& evidence) {
  const double ours = mean_error(evidence, on_int32("quantensor:slices=3"));
  return near(
      ours, 1.5e-6, fmt::format("{:.2g}", ours),
      "Three slices hold about 21 bits of the row's largest element. Sums of integers are exact, so that no "
      "error grows with k; what a float conversion between the products costs the original is not in ours.");
}

}  // namespace

std::vector<PaperFigure> mixpert_figures() {
  return {{"mixpert-fig2",
           "mixpert",
           "Fig. 2 (errors), section 2.2",
           "Frobenius error of emulations on square matrices",
           "64 x 64 entries of squares of m = n = k; uniform on [-1, 1], and [0, 1] beside it, since the "
           "paper does "
           "not say what its matrices hold; the A100's model, int8 products exact; native fp32 adds one "
           "after the "
           "other",
           {{"",
             {{"schemes",
               {"bf16", "bf16x3", "bf16x6", "tf32", "tf32x3", "quantensor:slices=1", "quantensor:slices=2",
                "quantensor:slices=3", "int8x6", "native"}},
              {"accumulators", {"a100", "int32"}},
              {"distributions", {uniform, "uniform01"}},
              {"m", {"64"}},
              {"n", {"64"}},
              {"k", {"512", "1024", "2048", "4096", "8192"}}}}},
           {{"k"}, {frobenius}},
           {{"APE, six bf16 products, errs by 9.85e-5", "9.85e-5", ape},
            {"CUTLASS, three tf32 products, errs less than cuBLAS's fp32", "less", tf32x3_beats_native},
            {"QuanTensor, three int8 products, errs by 6.76e-5", "6.76e-5", quantised_twice},
            {"QuanTensor of high resolution errs by 1.5e-6", "1.5e-6", quantised_thrice}}}};
}

}  // namespace kintsugi::tools
