// dgemm-tc Figs. 3 and 8: accuracy of the DP and SP modes compared with native products, and of the CR mode,
// which is correctly rounded.
#include "lab/reproduce/papers/dgemm_tc.hpp"

#include <cmath>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* measure = "max_relative";
const SchemeOnEngine native{"native", "cpu", ""};
// Algorithm 1 as in the paper: the DP mode for FP64 operands, the SP mode for FP32.
const SchemeOnEngine dp_or_sp{"ozaki-fp16:grid=sigma", "cpu", "fp32"};
const SchemeOnEngine cr{"ozaki-fp16:grid=sigma:mode=cr", "cpu", "fp32"};
const SchemeOnEngine cr_fp64{"ozaki-fp64:grid=sigma", "cpu", "fp64"};

PaperSweep sweep_of(const std::string& name, const char* type, const std::vector<std::string>& schemes,
                    const char* engine, const std::vector<std::string>& shapes,
                    const std::vector<std::string>& seeds) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"types", {type}},
                    {"engines", {engine}},
                    {"distributions", dgemm_tc_distributions()},
                    {"shapes", shapes},
                    {"seeds", seeds}}};
}

const std::vector<std::string> squares{"128x128x128", "256x256x256", "512x512x512"};
// The paper's inner lengths, for a small part of C.
const std::vector<std::string> paper_lengths{"64x64x1024", "64x64x2048", "64x64x4096", "64x64x7168",
                                             "64x64x10240"};
const std::vector<std::string> two_seeds{"1", "2"};
const std::vector<std::string> five_seeds{"1", "2", "3", "4", "5"};
constexpr double min_k_of_paper = 1024;

// Kinds of native sums. The paper's native product is cuBLAS's, whose order of additions is unknown.
struct NativeSums {
  std::string name;
  SchemeOnEngine method;
};
const std::vector<NativeSums> native_sums{{"OpenBLAS's sums", native},
                                          {"sequential sums", {"native", "reference", ""}}};

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// Returns a series for each range, named by the range and `suffix`. values(filter) returns the values of the
// rows that pass the filter, which are those of the range.
Measured by_range(const std::string& suffix,
                  const std::function<std::vector<double>(const Filter&)>& values) {
  Measured measured;
  for (const auto& distribution : dgemm_tc_distributions())
    measured.push_back({dgemm_tc_range(distribution) + suffix, values(in_distribution(distribution))});
  return measured;
}

// Returns a series for each size, native product and range. Its values are geometric means over seeds. A
// single seed says little: the maximum relative error is the error of the element that cancels most, and this
// error differs much from seed to seed.
Measured errors_over_native(const Evidence& evidence) {
  Measured measured;
  for (const double k : evidence.lengths(from_k(min_k_of_paper))) {
    for (const NativeSums& sums : native_sums) {
      const auto series = by_range(fmt::format(", k = {}, {}", k, sums.name), [&](const Filter& filter) {
        const auto pairs = evidence.pairs(dp_or_sp, sums.method, measure, both(filter, at_k(k)));
        return std::vector<double>{geometric_mean(ratios(pairs))};
      });
      measured.insert(measured.end(), series.begin(), series.end());
    }
  }
  return measured;
}

Measured cr_over_native(const Evidence& evidence) {
  return by_range("",
                  [&](const Filter& filter) { return ratios(evidence.pairs(cr, native, measure, filter)); });
}

Measured correctly_rounded(const Evidence& evidence) {
  const auto shares = [&](const SchemeOnEngine& method, const std::string& suffix) {
    return by_range(suffix, [&](const Filter& filter) {
      return evidence.errors(method, "correctly_rounded_fraction", filter);
    });
  };
  Measured measured = shares(cr, ", fp16 slices");
  const Measured others = shares(cr_fp64, ", FP64 slices");
  measured.insert(measured.end(), others.begin(), others.end());
  return measured;
}

// Explanation of claims that do not agree.
constexpr const char* counts_a_kept_slice =
    "t(d) of Algorithm 3 counts slice d, which is kept; what is left out is smaller by the bits of a "
    "slice, and products without an error lose nothing where native's partial sums round.";

PaperFigure accuracy_of_dp() {
  return {
      .name = "dgemm-tc-fig3",
      .paper = "dgemm-tc",
      .place = "Fig. 3, section 5.2",
      .subject = "accuracy of the DP mode by size and range; CR mode",
      .conditions =
          "m = n = k of 128 to 512; 64 x 64 elements with the paper's k of 1024 to 10240, two seeds; "
          "OpenBLAS's and a sequential DGEMM stand for cublasDgemm; at most 4096 elements of C, against the "
          "exact result; Algorithm 1 literally (grid=sigma)",
      .sweeps = {sweep_of("", "fp64", {dp_or_sp.scheme, cr.scheme, cr_fp64.scheme, "native"}, "cpu", squares,
                          {"1"}),
                 sweep_of("long", "fp64", {dp_or_sp.scheme, "native"}, "cpu", paper_lengths, two_seeds),
                 sweep_of("sequential", "fp64", {"native"}, "reference", paper_lengths, two_seeds)},
      .drawn = {.dimensions = {"m = n = k", "parameter of the distribution"}, .measures = {measure}},
      .claims = {{"dgemm-tc-fig3-dp", errors_over_native, counts_a_kept_slice},
                 {"dgemm-tc-fig3-cr", correctly_rounded},
                 {"dgemm-tc-higher", cr_over_native}}};
}

PaperFigure accuracy_of_sp() {
  return {.name = "dgemm-tc-fig8",
          .paper = "dgemm-tc",
          .place = "Fig. 8, section 5.3",
          .subject = "accuracy of the SP mode by size and range",
          .conditions =
              "m = n = k of 128 to 512; 64 x 64 elements with the paper's k of 1024 to 10240, five seeds; "
              "OpenBLAS's and a sequential SGEMM stand for cublasSgemm; at most 4096 elements of C, against "
              "the exact result; Algorithm 1 literally (grid=sigma)",
          .sweeps = {sweep_of("", "fp32", {dp_or_sp.scheme, "native"}, "cpu", squares, {"1"}),
                     sweep_of("long", "fp32", {dp_or_sp.scheme, "native"}, "cpu", paper_lengths, five_seeds),
                     sweep_of("sequential", "fp32", {"native"}, "reference", paper_lengths, five_seeds)},
          .drawn = {.dimensions = {"m = n = k", "parameter of the distribution"}, .measures = {measure}},
          .claims = {{"dgemm-tc-fig8-sp", errors_over_native, counts_a_kept_slice}}};
}

}  // namespace

std::vector<std::string> dgemm_tc_distributions() { return {"phi:0.1", "phi:1", "phi:2"}; }

std::string dgemm_tc_range(const std::string& distribution) { return "phi = " + distribution.substr(4); }

std::vector<PaperFigure> dgemm_tc_figures() {
  std::vector<PaperFigure> figures{accuracy_of_dp(), dgemm_tc_dp_counts(), dgemm_tc_cr_counts(),
                                   accuracy_of_sp()};
  return figures;
}

}  // namespace kintsugi::tools
