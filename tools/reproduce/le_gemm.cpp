// le-gemm Figs. 10 to 13 and 16.
#include <cmath>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* max_error = "le_gemm_max_error";
constexpr const char* mred = "le_gemm_mred";
// Ootomo's split and products, all of k summed in the unit.
const std::string ootomo_inside = "split-n:a=2:b=2:terms=3:scale=11:block=0";
const std::vector<std::string> schemes{"fp16", "markidis", "ootomo", ootomo_inside, "legemm", "native"};

// The A800's tensor cores are the A100's. Of the MI210's matrix cores there is no model.
constexpr const char* a800 = "a100";
constexpr const char* sequential = "fp32";

// Section 5: the range of all comparisons; section 5.5: of language models' data. Our other one is for comparison.
const std::string tested = "uniform";
const std::string positive = "uniform01";
const std::string language = "language-model";

Way on(const char* accumulator, const std::string& scheme) { return {scheme, "reference", accumulator}; }

// Errors of a scheme over those of le-gemm, on the average over seeds, by size.
Measured reductions(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                    const char* measure, const std::string& place) {
  const Filter where = in_distribution(tested);
  Measured measured;
  for (const double k : evidence.lengths(where)) {
    const auto pairs = evidence.pairs(on(accumulator, scheme), on(accumulator, "legemm"), measure,
                                      both(where, of_length(k)));
    measured.push_back({fmt::format("n = {}{}", k, place), {mean(ratios(pairs))}});
  }
  return measured;
}

const std::string outside = "sums outside";
const std::string inside = "sums inside";

// Whether Ootomo's sums leave the unit the paper does not say.
Measured reductions_of_ootomo(const Evidence& evidence, const char* measure) {
  Measured measured = reductions(evidence, a800, "ootomo", measure, ", " + outside);
  const Measured others = reductions(evidence, a800, ootomo_inside, measure, ", " + inside);
  measured.insert(measured.end(), others.begin(), others.end());
  return measured;
}

struct Baseline {
  const char* id;
  const char* scheme;
  const char* explanation;
};

constexpr const char* escapes_truncation =
    "Sums that leave the unit are added in fp32 to nearest and escape the truncation that le-gemm's "
    "accumulators over all of k suffer. Where Ootomo's sums stay inside the two differ less, but le-gemm's "
    "slices, cut instead of rounded, hold 21 bits for 23 (h2sgemm-table1).";

constexpr Baseline baselines[] = {{"wmma", "fp16",
                                   "The ratio falls as the size grows: Eq. 19 cannot exceed 1, which fp16 "
                                   "reaches where its sign is wrong. A mean "
                                   "over sizes is that of the smallest ones."},
                                  {"mark", "markidis",
                                   "At the smallest sizes rounding beats cutting; as k grows, truncation "
                                   "weighs more in Markidis's one accumulator."},
                                  {"ooto", "ootomo", escapes_truncation}};

void add_reduction_claims(std::vector<Claim>& claims, const Baseline& baseline, const char* name,
                          const char* measure) {
  const std::string id = fmt::format("le-gemm-{}-{}", name, baseline.id);
  const bool ootomo = std::string(baseline.id) == "ooto";
  const auto values = [=](const Evidence& evidence) {
    return ootomo ? reductions_of_ootomo(evidence, measure)
                  : reductions(evidence, a800, baseline.scheme, measure, "");
  };
  claims.push_back({id, values, baseline.explanation});
  claims.push_back({id + "-smaller", values, baseline.explanation});
  claims.push_back({id + "-mi210", [=](const Evidence& evidence) {
                      return reductions(evidence, sequential, baseline.scheme, measure, "");
                    }});
}

// le-gemm's mean error of every k, the least k first.
std::vector<double> errors_by_k(const Evidence& evidence, const char* measure,
                                const std::string& distribution, double least_k, double most_k) {
  const Filter where = in_distribution(distribution);
  std::vector<double> means;
  for (const double k : evidence.lengths(where)) {
    if (k < least_k || k > most_k) continue;
    means.push_back(mean(evidence.errors(on(a800, "legemm"), measure, both(where, of_length(k)))));
  }
  return means;
}

std::vector<Claim> square_claims() {
  std::vector<Claim> claims;
  for (const auto& [name, measure] : {std::pair{"max", max_error}, std::pair{"mred", mred}}) {
    for (const Baseline& baseline : baselines) add_reduction_claims(claims, baseline, name, measure);
    claims.push_back({fmt::format("le-gemm-{}-grows", name), [measure = measure](const Evidence& evidence) {
                        return Measured{{"n = 64 to 1024", errors_by_k(evidence, measure, tested, 64, 1024)}};
                      }});
  }
  return claims;
}

PaperSweep squares_sweep() {
  return {"",
          {{"schemes", schemes},
           {"accumulators", {a800, sequential}},
           {"distributions", {tested, positive}},
           {"shapes", {"64x64x64", "128x128x128", "256x256x256", "512x512x512"}},
           {"seeds", {"1", "2", "3"}},
           {"max-entries", {"262144"}}}};
}

PaperSweep largest_square_sweep() {
  return {"1024",
          {{"schemes", schemes},
           {"accumulators", {a800, sequential}},
           {"distributions", {tested}},
           {"shapes", {"1024x1024x1024"}},
           {"max-entries", {"1048576"}}}};
}

PaperFigure fig10() {
  return {"le-gemm-fig10-11",
          "le-gemm",
          "Figs. 10 and 11, section 5.3",
          "Max_error and MRED against native fp32, square matrices",
          "uniform on [-1, 1], the paper's range, and on [0, 1] for comparison; the A100's model stands for "
          "the A800; the "
          "native product is sequential fp32 for the paper's CPU; every entry is compared; ratios are "
          "means over three seeds (the paper: ten experiments), one seed and [-1, 1] alone at 1024",
          {squares_sweep(), largest_square_sweep()},
          {{"m = n = k"}, {max_error, mred}},
          square_claims()};
}

// Share of the entries whose difference to native is below the limit, an edge of the histogram.
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
    if (from >= -limit * (1 + 1e-9) && to <= limit * (1 + 1e-9)) below += count;
  }
  return below / total;
}

double share_of(const Evidence& evidence, const char* accumulator, const std::string& scheme, double limit) {
  return share_below(evidence.of(on(accumulator, scheme), everywhere()).front(), limit);
}

// le-gemm's share of entries over that of a scheme.
double share_ratio(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                   double limit) {
  return share_of(evidence, accumulator, "legemm", limit) / share_of(evidence, accumulator, scheme, limit);
}

Measured of_fp16(const Evidence& evidence) {
  const double single = share_of(evidence, a800, "fp16", 1e-5);
  const auto over = [&](const std::string& scheme) {
    return std::vector<double>{single / share_of(evidence, a800, scheme, 1e-5)};
  };
  return {{"Markidis's scheme", over("markidis")},
          {"Ootomo's scheme, sums outside", over("ootomo")},
          {"Ootomo's scheme, sums inside", over(ootomo_inside)},
          {"le-gemm", over("legemm")}};
}

Measured over_markidis(const Evidence& evidence, const char* accumulator) {
  return {{"Markidis's scheme", {share_ratio(evidence, accumulator, "markidis", 1e-6)}}};
}

Measured over_ootomo(const Evidence& evidence) {
  return {{outside, {share_ratio(evidence, a800, "ootomo", 1e-6)}},
          {inside, {share_ratio(evidence, a800, ootomo_inside, 1e-6)}}};
}

PaperFigure fig12() {
  return {
      "le-gemm-fig12-13",
      "le-gemm",
      "Figs. 12 and 13, section 5.3",
      "histograms of the relative difference to native fp32",
      "uniform on [-1, 1], the paper's range; 512 x 512 entries at the paper's k = 1024; the A100's model "
      "for the A800, sequential fp32 beside it",
      {{"",
        {{"schemes", schemes},
         {"accumulators", {a800, sequential}},
         {"distributions", {tested}},
         {"shapes", {"512x512x1024"}},
         {"histogram", {"true"}},
         {"max-entries", {"262144"}}}}},
      {{"none"}, {}},
      {{"le-gemm-hist-wmma", of_fp16},
       {"le-gemm-hist-mark", [](const Evidence& evidence) { return over_markidis(evidence, a800); }},
       {"le-gemm-hist-mark-mi210",
        [](const Evidence& evidence) { return over_markidis(evidence, sequential); }},
       {"le-gemm-hist-similar", over_ootomo, escapes_truncation},
       {"le-gemm-hist-ooto", over_ootomo, escapes_truncation}}};
}

PaperSweep application_sweep(const std::string& name, const std::string& distribution,
                             const std::vector<std::string>& lengths) {
  return {name,
          {{"schemes", {"ootomo", "legemm", "native"}},
           {"accumulators", {a800, sequential}},
           {"distributions", {distribution}},
           {"m", {"64"}},
           {"n", {"64"}},
           {"k", lengths},
           {"seeds", {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}}}};
}

struct Application {
  const char* id;
  const char* name;
  std::string distribution;
  double least_k;
  double most_k;
};

const Application applications[] = {{"k-means", "k-means", tested, 16, 128},
                                    {"feed-forward", "feed-forward", tested, 768, 3072},
                                    {"language-models", "language models", language, 1024, 8192}};

std::vector<Claim> application_claims() {
  std::vector<Claim> claims;
  for (const auto& [name, measure] : {std::pair{"max", max_error}, std::pair{"mred", mred}}) {
    for (const Application& application : applications)
      claims.push_back(
          {fmt::format("le-gemm-fig16-{}-{}", name, application.id),
           [application, measure = measure](const Evidence& evidence) {
             return Measured{{application.name, errors_by_k(evidence, measure, application.distribution,
                                                            application.least_k, application.most_k)}};
           },
           "Of so few terms the entries nearest to 0 decide, and they differ from seed to seed."});
  }
  return claims;
}

PaperFigure fig16() {
  return {"le-gemm-fig16",
          "le-gemm",
          "Fig. 16, section 5.5",
          "error against k for applications",
          "64 x 64 entries, ten seeds as in the paper; k-means (16, 64, 128 features) and BERT's "
          "feed-forward layers (k = 768, 3072) on [-1, 1], the range of the paper's comparisons; linear "
          "transformations of language models (k = 1024 to 8192) on [0.5, 2.5], their data's range; the "
          "paper does not give these lengths",
          {application_sweep("", tested, {"16", "64", "128", "768", "3072"}),
           application_sweep("language-models", language, {"1024", "2048", "4096", "8192"})},
          {{"k"}, {max_error, mred}},
          application_claims()};
}

}  // namespace

std::vector<PaperFigure> le_gemm_figures() { return {fig10(), fig12(), fig16()}; }

}  // namespace kintsugi::tools
