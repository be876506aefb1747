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

double mean_error(const Evidence& evidence, const Way& way, const std::string& distribution = uniform) {
  return mean(evidence.errors(way, frobenius, in_distribution(distribution)));
}

// At our largest size, the one nearest to the paper's.
double last_error(const Evidence& evidence, const Way& way, const std::string& distribution) {
  return evidence.errors(way, frobenius, in_distribution(distribution)).back();
}

constexpr const char* within_three = " (agrees: within a factor of 3)";

Answer near(double ours, double theirs, const std::string& text, const std::string& reason) {
  return agrees_if(ours > theirs / 3 && ours < theirs * 3, text, reason);
}

// All of k summed in the unit; and every 16 inner indices added outside.
const std::string ape_inside = "split-n:format=bf16:a=3:b=3:terms=6:scale=0:block=0";
const std::string tf32_outside = "split-n:format=tf32:a=2:b=2:terms=3:scale=0:block=16";

std::string last_text(const Evidence& evidence, const Way& way) {
  return fmt::format("{:.3g} on [0, 1], {:.3g} on [-1, 1]", last_error(evidence, way, positive),
                     last_error(evidence, way, uniform));
}

// Judged where the accumulator weighs most: on [0, 1], at the largest size.
Answer ape(const Evidence& evidence, double theirs) {
  return near(
      last_error(evidence, on_a100(ape_inside), positive), theirs,
      last_text(evidence, on_a100(ape_inside)) +
          fmt::format(" at k = {} with all of k in the unit, {} with sums that leave it every 64 (bf16x6)",
                      evidence.largest_k(), last_text(evidence, on_a100("bf16x6"))),
      "Neither structure errs so much at these sizes.");
}

Answer cause_of_ape(const Evidence& evidence) {
  const auto tf32 =
      ratios(evidence.pairs(on_a100("tf32x3"), on_a100(ape_inside), frobenius, in_distribution(positive)));
  const double six = mean_error(evidence, on_a100("bf16x6"));
  return agrees_if(six > 1e-5,
                   fmt::format("bf16x6 {:.2g}; three tf32 products with all of k in the unit err {} times as "
                               "much as six bf16 products there, on [0, 1]",
                               six, range_text(tf32)),
                   "Six products of three bf16 slices hold fp32's accuracy where their sums leave the unit: "
                   "they err less than native fp32. What errs is the accumulator, which truncates, if all of "
                   "k is left in it, and tf32 products then err as well.");
}

Answer tf32_beats_native(const Evidence& evidence) {
  const Filter where = in_distribution(uniform);
  const auto outside = ratios(evidence.pairs(on_a100(tf32_outside), cublas, frobenius, where));
  const auto inside = ratios(evidence.pairs(on_a100("tf32x3"), cublas, frobenius, where));
  return agrees_if(most(outside) < 1,
                   fmt::format("{} times native fp32's error with sums that leave the unit every 16; {} with "
                               "all of k in it (tf32x3)",
                               range_text(outside), range_text(inside)),
                   "It errs more with either structure.");
}

Answer native_average(const Evidence& evidence) {
  return near(last_error(evidence, cublas, positive), 1.14e-6,
              fmt::format("{} at k = {}", last_text(evidence, cublas), evidence.largest_k()),
              "Our native product adds one after the other; how cuBLAS adds is not modelled here.");
}

Answer tf32_average(const Evidence& evidence) {
  return near(
      last_error(evidence, on_a100(tf32_outside), positive), 4.61e-7,
      fmt::format("{} at k = {} with sums that leave the unit every 16; {} with all of k in it (tf32x3)",
                  last_text(evidence, on_a100(tf32_outside)), evidence.largest_k(),
                  last_text(evidence, on_a100("tf32x3"))),
      "Neither structure errs so.");
}

Answer quantised_twice(const Evidence& evidence) {
  const Way way = on_int32("quantensor:slices=2");
  return near(mean_error(evidence, way), 6.76e-5,
              fmt::format("{:.3g} on [-1, 1], {:.3g} on [0, 1]; with one slice {:.2g} on [-1, 1]",
                          mean_error(evidence, way), mean_error(evidence, way, positive),
                          mean_error(evidence, on_int32("quantensor:slices=1"))),
              "Ours scales by powers of two, QuanTensor by 127 / max (docs/schemes/quantensor.md), which is "
              "worth up to one bit a slice.");
}

Answer quantised_thrice(const Evidence& evidence) {
  const Way way = on_int32("quantensor:slices=3");
  return near(
      mean_error(evidence, way), 1.5e-6,
      fmt::format("{:.3g} on [-1, 1], {:.3g} on [0, 1]", mean_error(evidence, way),
                  mean_error(evidence, way, positive)),
      "Three slices hold about 21 bits of the row's largest element, and sums of integers are exact.");
}

std::vector<Claim> claims() {
  const std::string factor = within_three;
  return {
      {"APE, six bf16 products, errs by 9.85e-5", "9.85e-5" + factor,
       [](const Evidence& evidence) { return ape(evidence, 9.85e-5); }},
      {"That is the cumulative error inherent in bf16", "bf16", cause_of_ape},
      {"CUTLASS, three tf32 products, errs less than cuBLAS's fp32", "less", tf32_beats_native},
      {"QuanTensor, three int8 products, errs by 6.76e-5", "6.76e-5" + factor, quantised_twice},
      {"QuanTensor of high resolution errs by 1.5e-6", "1.5e-6" + factor, quantised_thrice},
      {"cuBLAS errs by 1.14e-6 on the average of sizes (section 4.3)", "1.14e-6" + factor, native_average},
      {"CUTLASS errs by 4.61e-7 on that average", "4.61e-7" + factor, tf32_average},
      {"APE errs by 7.16e-5 on that average", "7.16e-5" + factor,
       [](const Evidence& evidence) { return ape(evidence, 7.16e-5); }}};
}

}  // namespace

std::vector<PaperFigure> mixpert_figures() {
  return {{"mixpert-fig2",
           "mixpert",
           "Fig. 2 (errors), section 2.2; section 4.3",
           "Frobenius error of emulations on square matrices",
           "64 x 64 entries of squares of m = n = k; the paper does not say what its matrices hold: uniform "
           "on [-1, 1] and [0, 1]; APE and the averages of section 4.3, whose sizes take 1 GB and more, are "
           "judged at our largest k on [0, 1], QuanTensor, whose error does not grow with k, on [-1, 1]; the "
           "A100's model, int8 products exact; native fp32 adds one after the other and stands for cuBLAS",
           {{"",
             {{"schemes",
               {"bf16", "bf16x3", "bf16x6", ape_inside, "tf32", "tf32x3", tf32_outside, "quantensor:slices=1",
                "quantensor:slices=2", "quantensor:slices=3", "int8x6", "native"}},
              {"accumulators", {"a100", "int32"}},
              {"distributions", {uniform, positive}},
              {"m", {"64"}},
              {"n", {"64"}},
              {"k", {"512", "1024", "2048", "4096", "8192"}}}}},
           {{"k"}, {frobenius}},
           claims()}};
}

}  // namespace kintsugi::tools
