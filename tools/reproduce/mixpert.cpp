// mixpert Fig. 2: the errors.
#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const Way cublas{"native", "reference", ""};
const std::string uniform = "uniform";
const std::string positive = "uniform01";

Way on_a100(const std::string& scheme) { return {scheme, "reference", "a100"}; }
Way on_int32(const std::string& scheme) { return {scheme, "reference", "int32"}; }

double mean_error(const Evidence& evidence, const Way& way) {
  return mean(evidence.errors(way, frobenius, in_distribution(uniform)));
}

Answer near(double ours, double theirs, const std::string& text, const std::string& reason) {
  return agrees_if(ours > theirs / 3 && ours < theirs * 3, text, reason);
}

// All of k summed in the unit, and every 16, an iteration of CUTLASS's main loop, added outside.
const std::string ape_inside = "split-n:format=bf16:a=3:b=3:terms=6:scale=0:block=0";
const std::string cutlass_staged = "split-n:format=tf32:a=2:b=2:terms=3:scale=0:block=16";

Answer ape(const Evidence& evidence) {
  const auto inside = evidence.errors(on_a100(ape_inside), frobenius, in_distribution(positive));
  const double six = mean_error(evidence, on_a100("bf16x6"));
  return near(
      most(inside), 9.85e-5,
      fmt::format(
          "{} on [0, 1], growing with k, with all of k in the unit; {:.2g} with sums that leave it every "
          "64 (bf16x6)",
          range_text(inside), six),
      "neither structure errs so much at these sizes");
}

Answer cause_of_ape(const Evidence& evidence) {
  const auto tf32 =
      ratios(evidence.pairs(on_a100("tf32x3"), on_a100(ape_inside), frobenius, in_distribution(positive)));
  const double six = mean_error(evidence, on_a100("bf16x6"));
  return agrees_if(six > 1e-5,
                   fmt::format("bf16x6 {:.2g}; three tf32 products with all of k in the unit err {} times as "
                               "much as six bf16 products "
                               "there, on [0, 1]",
                               six, range_text(tf32)),
                   "Six exact products of three bf16 slices miss 2^-24 of an operand or so, and the "
                   "accumulator is fp32. What errs is "
                   "the accumulator, which truncates, if all of k is left in it: tf32 products then err as "
                   "well, and six bf16 products "
                   "whose sums leave it err less than native fp32.");
}

Answer tf32x3_beats_native(const Evidence& evidence) {
  const auto staged =
      ratios(evidence.pairs(on_a100(cutlass_staged), cublas, frobenius, in_distribution(uniform)));
  const auto inside = ratios(evidence.pairs(on_a100("tf32x3"), cublas, frobenius, in_distribution(uniform)));
  return agrees_if(
      most(staged) < 1,
      fmt::format("{} times native fp32's error with sums that leave the unit every 16, as CUTLASS's do; {} "
                  "with all of k in it (tf32x3)",
                  range_text(staged), range_text(inside)),
      "The high slice of CUTLASS is truncated by default, ours is rounded; our native product adds one after "
      "the other, cuBLAS in several partial sums");
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
               {"bf16", "bf16x3", "bf16x6", ape_inside, "tf32", "tf32x3", cutlass_staged,
                "quantensor:slices=1", "quantensor:slices=2", "quantensor:slices=3", "int8x6", "native"}},
              {"accumulators", {"a100", "int32"}},
              {"distributions", {uniform, positive}},
              {"m", {"64"}},
              {"n", {"64"}},
              {"k", {"512", "1024", "2048", "4096", "8192"}}}}},
           {{"k"}, {frobenius}},
           {{"APE, six bf16 products, errs by 9.85e-5", "9.85e-5", ape},
            {"That is the cumulative error inherent in bf16", "bf16", cause_of_ape},
            {"CUTLASS, three tf32 products, errs less than cuBLAS's fp32", "less", tf32x3_beats_native},
            {"QuanTensor, three int8 products, errs by 6.76e-5", "6.76e-5", quantised_twice},
            {"QuanTensor of high resolution errs by 1.5e-6", "1.5e-6", quantised_thrice}}}};
}

}  // namespace kintsugi::tools
