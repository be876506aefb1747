// dgemm-tc Figs. 3 and 8: accuracy of the DP and SP modes beside native arithmetic, and CR mode's zero error.
#include "reproduce/dgemm_tc.hpp"

#include <cmath>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* measure = "max_relative";
const Way native{"native", "cpu", ""};
const Way dp{"ozaki-fp16", "cpu", "fp32"};
const Way sp{"ozaki-fp16", "cpu", "fp32"};
const Way cr{"ozaki-fp16:mode=cr", "cpu", "fp32"};
const Way cr_fp64{"ozaki-fp64", "cpu", "fp64"};

std::vector<PaperSweep> sweep_of(const char* type, const std::vector<std::string>& schemes) {
  return {{"",
           {{"schemes", schemes},
            {"types", {type}},
            {"engines", {"cpu"}},
            {"distributions", dgemm_tc_distributions()},
            {"shapes", {"128x128x128", "256x256x256", "512x512x512"}},
            {"seeds", {"1"}}}}};
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// The maximum of a relative error is that of the entry that cancels most, so single cells differ by much.
Answer equivalent(const Evidence& evidence, const Way& way) {
  const auto values = ratios(evidence.pairs(way, native, measure, everywhere()));
  const double middle = geometric_mean(values);
  return agrees_if(
      middle < 10 && middle > 0.1,
      fmt::format("{} times native's error, {:.2g} in the geometric mean", range_text(values), middle),
      "It errs less. t(d) of Algorithm 3 counts slice d, which is kept; what is left out is 2^-(b + 1) of "
      "it, and "
      "sums of products without an error lose nothing where native's partial sums round.");
}

Answer no_entry_is_wrong(const Evidence& evidence) {
  double least_share = 1;
  int rows = 0;
  for (const Way& way : {cr, cr_fp64}) {
    for (const double share : evidence.errors(way, "correctly_rounded_fraction", everywhere())) {
      least_share = std::min(least_share, share);
      ++rows;
    }
  }
  return agrees_if(least_share == 1,
                   fmt::format("{:.6g} % correctly rounded in {} rows", 100 * least_share, rows),
                   "an entry is not the exact result rounded once");
}

PaperFigure accuracy_of_dp() {
  return {"dgemm-tc-fig3",
          "dgemm-tc",
          "Fig. 3, section 5.2",
          "accuracy of the DP mode by size and range; CR mode",
          "m = n = k of 128 to 512, where the paper goes to 10240; OpenBLAS's DGEMM stands for cublasDgemm; "
          "at most "
          "4096 entries of C, against the exact result",
          sweep_of("fp64", {dp.scheme, cr.scheme, cr_fp64.scheme, "native"}),
          {{"m = n = k", "parameter of the distribution"}, {measure}},
          {{"DP mode is as accurate as native DGEMM, with differences, since d is an estimate",
            "equivalent (agrees: within 10 times)",
            [](const Evidence& evidence) { return equivalent(evidence, dp); }},
           {"CR mode's error is always zero, with fp16 and with FP64 products", "zero", no_entry_is_wrong}}};
}

PaperFigure accuracy_of_sp() {
  return {"dgemm-tc-fig8",
          "dgemm-tc",
          "Fig. 8, section 5.3",
          "accuracy of the SP mode by size and range",
          "m = n = k of 128 to 512, where the paper goes to 10240; OpenBLAS's SGEMM stands for cublasSgemm; "
          "at most "
          "4096 entries of C, against the exact result",
          sweep_of("fp32", {sp.scheme, "native"}),
          {{"m = n = k", "parameter of the distribution"}, {measure}},
          {{"SP mode is as accurate as native SGEMM", "equivalent (agrees: within 10 times)",
            [](const Evidence& evidence) { return equivalent(evidence, sp); }}}};
}

}  // namespace

std::vector<std::string> dgemm_tc_distributions() { return {"phi:0.1", "phi:1", "phi:2"}; }

std::vector<PaperFigure> dgemm_tc_figures() {
  std::vector<PaperFigure> figures{accuracy_of_dp(), dgemm_tc_dp_counts(), dgemm_tc_cr_counts(),
                                   accuracy_of_sp(), dgemm_tc_table()};
  return figures;
}

}  // namespace kintsugi::tools
