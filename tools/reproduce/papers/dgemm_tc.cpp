// dgemm-tc Figs. 3 and 8: accuracy of the DP and SP modes compared with native products, and of the CR mode,
// which is correctly rounded.
#include "reproduce/papers/dgemm_tc.hpp"

#include <cmath>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* measure = "max_relative";
const SchemeOnEngine native{"native", "cpu", ""};
// Algorithm 1 as in the paper.
const SchemeOnEngine found_depth{"ozaki-fp16:grid=sigma", "cpu",
                                 "fp32"};  // DP mode for FP64 operands, SP for FP32
const SchemeOnEngine cr{"ozaki-fp16:grid=sigma:mode=cr", "cpu", "fp32"};
const SchemeOnEngine cr_fp64{"ozaki-fp64:grid=sigma", "cpu", "fp64"};

PaperSweep sweep_of(const std::string& name, const char* type, const std::vector<std::string>& schemes,
                    const char* engine, const std::vector<std::string>& shapes,
                    const std::vector<std::string>& seeds) {
  return {name,
          {{"schemes", schemes},
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
constexpr double min_of_paper = 1024;

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

// Returns a series for each range, with the values for the filter of its rows.
Measured by_range(const std::string& after, const std::function<std::vector<double>(const Filter&)>& values) {
  Measured measured;
  for (const auto& distribution : dgemm_tc_distributions())
    measured.push_back({dgemm_tc_range(distribution) + after, values(in_distribution(distribution))});
  return measured;
}

// Returns a series for each size, native product and range. The maximum relative error is that of the element
// that cancels most, so single seeds differ much.
Measured errors_over_native(const Evidence& evidence) {
  Measured measured;
  for (const double k : evidence.lengths(from_k(min_of_paper))) {
    for (const NativeSums& sums : native_sums) {
      const auto part = by_range(fmt::format(", k = {}, {}", k, sums.name), [&](const Filter& filter) {
        const auto pairs = evidence.pairs(found_depth, sums.method, measure, both(filter, at_k(k)));
        return std::vector<double>{geometric_mean(ratios(pairs))};
      });
      measured.insert(measured.end(), part.begin(), part.end());
    }
  }
  return measured;
}

Measured cr_over_native(const Evidence& evidence) {
  return by_range("",
                  [&](const Filter& filter) { return ratios(evidence.pairs(cr, native, measure, filter)); });
}

Measured correctly_rounded(const Evidence& evidence) {
  const auto shares = [&](const SchemeOnEngine& method, const std::string& after) {
    return by_range(after, [&](const Filter& filter) {
      return evidence.errors(method, "correctly_rounded_fraction", filter);
    });
  };
  Measured measured = shares(cr, ", fp16 slices");
  const Measured others = shares(cr_fp64, ", FP64 slices");
  measured.insert(measured.end(), others.begin(), others.end());
  return measured;
}

constexpr const char* counts_a_kept_slice =
    "t(d) of Algorithm 3 counts slice d, which is kept; what is left out is smaller by the bits of a "
    "slice, and products without an error lose nothing where native's partial sums round.";

PaperFigure accuracy_of_dp() {
  return {
      "dgemm-tc-fig3",
      "dgemm-tc",
      "Fig. 3, section 5.2",
      "accuracy of the DP mode by size and range; CR mode",
      "m = n = k of 128 to 512; 64 x 64 elements with the paper's k of 1024 to 10240, two seeds; "
      "OpenBLAS's and a sequential DGEMM stand for cublasDgemm; at most 4096 elements of C, against the "
      "exact result; Algorithm 1 literally (grid=sigma)",
      {sweep_of("", "fp64", {found_depth.scheme, cr.scheme, cr_fp64.scheme, "native"}, "cpu", squares, {"1"}),
       sweep_of("long", "fp64", {found_depth.scheme, "native"}, "cpu", paper_lengths, two_seeds),
       sweep_of("sequential", "fp64", {"native"}, "reference", paper_lengths, two_seeds)},
      {{"m = n = k", "parameter of the distribution"}, {measure}},
      {{"dgemm-tc-fig3-dp", errors_over_native, counts_a_kept_slice},
       {"dgemm-tc-fig3-cr", correctly_rounded},
       {"dgemm-tc-higher", cr_over_native}}};
}

PaperFigure accuracy_of_sp() {
  return {"dgemm-tc-fig8",
          "dgemm-tc",
          "Fig. 8, section 5.3",
          "accuracy of the SP mode by size and range",
          "m = n = k of 128 to 512; 64 x 64 elements with the paper's k of 1024 to 10240, five seeds; "
          "OpenBLAS's and a sequential SGEMM stand for cublasSgemm; at most 4096 elements of C, against "
          "the exact result; Algorithm 1 literally (grid=sigma)",
          {sweep_of("", "fp32", {found_depth.scheme, "native"}, "cpu", squares, {"1"}),
           sweep_of("long", "fp32", {found_depth.scheme, "native"}, "cpu", paper_lengths, five_seeds),
           sweep_of("sequential", "fp32", {"native"}, "reference", paper_lengths, five_seeds)},
          {{"m = n = k", "parameter of the distribution"}, {measure}},
          {{"dgemm-tc-fig8-sp", errors_over_native, counts_a_kept_slice}}};
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
