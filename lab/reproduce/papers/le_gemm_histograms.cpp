// le-gemm Figs. 12 and 13: histograms of the differences to native products.
#include <cmath>
#include <functional>

#include "lab/reproduce/papers/le_gemm.hpp"

namespace kintsugi::tools::le_gemm {

namespace {

// Share of the elements whose difference to native is below the limit, an edge of the histogram.
double share_below(const Json& row, double limit) {
  const Json& edges = row.at("histogram").at("edges");
  const Json& counts = row.at("histogram").at("counts");
  double below = 0;
  double total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double from = i == 0 ? -HUGE_VAL : edges.at(i - 1).get<double>();
    const double to = i == edges.size() ? HUGE_VAL : edges.at(i).get<double>();
    const auto count = counts.at(i).get<double>();
    total += count;
    constexpr double edge_tolerance = 1 + 1e-9;  // edges are decimal numbers, rounded in the file
    if (from >= -limit * edge_tolerance && to <= limit * edge_tolerance) below += count;
  }
  return below / total;
}

// Share in the histogram of the sweep, which compares with sequential native sums.
double sweep_share(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                   double limit) {
  return share_below(evidence.rows_of(on_reference(accumulator, scheme), of_sweeps()).front(), limit);
}

// le-gemm's share in the sweep's histogram over that of a scheme.
double share_ratio(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                   double limit) {
  return sweep_share(evidence, accumulator, "legemm", limit) /
         sweep_share(evidence, accumulator, scheme, limit);
}

// Limits of the difference to native for which shares are compared: the paper calls one histogram narrower
// than another and gives no number.
struct Limit {
  std::string name;
  double value;
};
const std::vector<Limit> limits{{"1e-7", 1e-7}, {"1e-6", 1e-6}, {"1e-5", 1e-5}, {"1e-4", 1e-4}};

// Share of the elements whose difference to a CPU's native product is within the limit.
double share_against_native(const Evidence& evidence, const std::string& scheme, double limit,
                            const CpuSums& sums) {
  const auto rows = evidence.rows_of(on_reference(a800, scheme), against_native(sums.engine));
  for (const Json& share : rows.front().at("shares")) {
    if (share.at("limit").get<double>() == limit) return share.at("share").get<double>();
  }
  throw NoSuchRow(fmt::format("no share within {} of {}", limit, scheme));
}

using ShareValues = std::function<std::vector<double>(double limit, const CpuSums& sums)>;

Measured by_limit(const ShareValues& values, const std::string& label_prefix = "") {
  Measured measured;
  for (const CpuSums& sums : cpu_sums) {
    for (const Limit& limit : limits)
      measured.push_back(
          {fmt::format("{}within {}, {}", label_prefix, limit.name, sums.name), values(limit.value, sums)});
  }
  return measured;
}

// Shares of fp16 over those of the other schemes.
Measured fp16_share_ratios(const Evidence& evidence) {
  return by_limit([&](double limit, const CpuSums& sums) {
    std::vector<double> values;
    for (const auto& other :
         {std::string("markidis"), std::string("ootomo"), ootomo_inside, std::string("legemm")})
      values.push_back(share_against_native(evidence, "fp16", limit, sums) /
                       share_against_native(evidence, other, limit, sums));
    return values;
  });
}

// le-gemm's shares over those of a scheme.
Measured legemm_share_ratios(const Evidence& evidence, const std::string& scheme,
                             const std::string& label_prefix) {
  return by_limit(
      [&](double limit, const CpuSums& sums) {
        return std::vector<double>{share_against_native(evidence, "legemm", limit, sums) /
                                   share_against_native(evidence, scheme, limit, sums)};
      },
      label_prefix);
}

// The paper claims a narrower error range and a smaller maximum error than Markidis's; both are measured.
Measured claim_over_markidis(const Evidence& evidence) {
  Measured measured = legemm_share_ratios(evidence, "markidis", "");
  for (const CpuSums& sums : cpu_sums) {
    measured.push_back({"Max_error, " + sums.name,
                        ratios(evidence.pairs(on_reference(a800, "markidis"), on_reference(a800, "legemm"),
                                              max_error, against_native(sums.engine)))});
  }
  return measured;
}

Measured claim_over_markidis_on_mi210(const Evidence& evidence) {
  return {{"Markidis's scheme", {share_ratio(evidence, sequential, "markidis", 1e-6)}}};
}

Measured claim_over_ootomo(const Evidence& evidence) {
  Measured measured = legemm_share_ratios(evidence, "ootomo", outside_label + ", ");
  const auto others = legemm_share_ratios(evidence, ootomo_inside, inside_label + ", ");
  measured.insert(measured.end(), others.begin(), others.end());
  return measured;
}

}  // namespace

PaperFigure histogram_figure() {
  PaperFigure figure{.name = "le-gemm-fig12-13",
                     .paper = "le-gemm",
                     .place = "Figs. 12 and 13, section 5.3",
                     .subject = "histograms of the relative difference to native fp32",
                     .conditions =
                         "uniform on [-1, 1], the paper's range; 512 x 512 elements at the paper's k = 1024; "
                         "the A100's model for the A800, sequential fp32 beside it; the native product is "
                         "sequential fp32 or OpenBLAS's for the paper's CPU",
                     .sweeps = {{.name = "",
                                 .lists = {{"schemes", schemes},
                                           {"accumulators", {a800, sequential}},
                                           {"distributions", {tested_distribution}},
                                           {"shapes", {"512x512x1024"}},
                                           {"histogram", {"true"}},
                                           {"max-elements", {"262144"}}}}},
                     .drawn = {.dimensions = {"none"}, .measures = {}},
                     .claims = {{"le-gemm-hist-wmma", fp16_share_ratios},
                                {"le-gemm-hist-mark", claim_over_markidis},
                                {"le-gemm-hist-mark-mi210", claim_over_markidis_on_mi210},
                                {"le-gemm-hist-similar", claim_over_ootomo, escapes_truncation},
                                {"le-gemm-hist-ooto", claim_over_ootomo, escapes_truncation}}};
  figure.analysis = {.format = "product-errors",
                     .make_document =
                         [](bool quick) {
                           return product_errors({on_the_a800({{512, 512, 1024}}, {1}, "reference"),
                                                  on_the_a800({{512, 512, 1024}}, {1}, "cpu")},
                                                 quick);
                         },
                     .name = "shares"};
  return figure;
}

}  // namespace kintsugi::tools::le_gemm
