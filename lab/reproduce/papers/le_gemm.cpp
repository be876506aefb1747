// le-gemm Figs. 10, 11 and 16.
#include <cmath>

#include "lab/reproduce/papers/le_gemm.hpp"

namespace kintsugi::tools {

using namespace le_gemm;

namespace {

constexpr double max_k_with_all_elements = 1024;  // beyond it only a part of C's elements is compared

// Returns the largest k for a measure: Max_error needs all elements, so it is not taken from a part of C.
double largest_k_of(const char* measure) { return measure == max_error ? max_k_with_all_elements : HUGE_VAL; }

// Returns the errors of a scheme over those of le-gemm, averaged over seeds: a series for each k, named by k
// and `suffix`.
Measured reductions(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                    const char* measure, const std::string& suffix, const Filter& rows, double max_k) {
  const Filter filter = both(in_distribution(tested_distribution), rows);
  Measured measured;
  // Not every accumulator has rows of every k.
  const Filter with_accumulator =
      both(filter, [=](const Json& row) { return cell(row, "accumulator") == accumulator; });
  for (const double k : evidence.lengths(with_accumulator)) {
    if (k > max_k) continue;
    const auto pairs = evidence.pairs(on_reference(accumulator, scheme), on_reference(accumulator, "legemm"),
                                      measure, both(filter, at_k(k)));
    measured.push_back({fmt::format("n = {}{}", k, suffix), {mean(ratios(pairs))}});
  }
  return measured;
}

// Returns the reductions on the A800, for both orders of the CPU's sums.
Measured reductions_on_a800(const Evidence& evidence, const std::string& scheme, const char* measure,
                            const std::string& suffix) {
  Measured measured;
  for (const CpuSums& sums : cpu_sums) {
    const auto series = reductions(evidence, a800, scheme, measure, suffix + ", " + sums.name, sums.rows,
                                   largest_k_of(measure));
    measured.insert(measured.end(), series.begin(), series.end());
  }
  return measured;
}

// Returns the reductions of Ootomo's scheme with partial sums added outside the unit and with all of k summed
// inside it, since the paper does not say which it has measured.
Measured reductions_of_ootomo(const Evidence& evidence, const char* measure) {
  Measured measured = reductions_on_a800(evidence, "ootomo", measure, ", " + outside_label);
  const Measured others = reductions_on_a800(evidence, ootomo_inside, measure, ", " + inside_label);
  measured.insert(measured.end(), others.begin(), others.end());
  return measured;
}

struct Baseline {
  const char* id;  // end of the claims' ids
  const char* scheme;
  const char* explanation;
};

constexpr Baseline baselines[] = {{"wmma", "fp16",
                                   "The ratio falls as the size grows: Eq. 19 cannot exceed 1, which "
                                   "fp16 reaches where its sign is wrong. A mean over sizes is that of "
                                   "the smallest ones."},
                                  {"mark", "markidis",
                                   "At the smallest sizes rounding beats cutting; as k grows, truncation "
                                   "weighs more in Markidis's one accumulator."},
                                  {"ooto", "ootomo", escapes_truncation}};

// Adds three claims about the ratios of a baseline's errors to le-gemm's errors. The claims are their average
// on the A800, that they exceed 1 there, and their average on the MI210.
void add_reduction_claims(std::vector<Claim>& claims, const Baseline& baseline, const char* measure_name,
                          const char* measure) {
  const std::string id = fmt::format("le-gemm-{}-{}", measure_name, baseline.id);
  const bool is_ootomo = std::string(baseline.id) == "ooto";
  const auto values = [=](const Evidence& evidence) {
    return is_ootomo ? reductions_of_ootomo(evidence, measure)
                     : reductions_on_a800(evidence, baseline.scheme, measure, "");
  };
  claims.push_back({id, values, baseline.explanation});
  claims.push_back({id + "-smaller", values, baseline.explanation});
  claims.push_back({id + "-mi210", [=](const Evidence& evidence) {
                      return reductions(evidence, sequential, baseline.scheme, measure, "", of_sweeps(),
                                        max_k_with_all_elements);
                    }});
}

// Returns le-gemm's errors, averaged over seeds, for every k from `min_k` to `max_k`, the smallest k first.
std::vector<double> errors_by_k(const Evidence& evidence, const char* measure,
                                const std::string& distribution, double min_k, double max_k,
                                const Filter& rows = everywhere()) {
  const Filter filter = both(in_distribution(distribution), rows);
  std::vector<double> means;
  for (const double k : evidence.lengths(filter)) {
    if (k < min_k || k > max_k) continue;
    means.push_back(mean(evidence.errors(on_reference(a800, "legemm"), measure, both(filter, at_k(k)))));
  }
  return means;
}

Measured growth_by_cpu_sums(const Evidence& evidence, const char* measure) {
  constexpr double smallest_k = 64;
  Measured measured;
  for (const CpuSums& sums : cpu_sums)
    measured.push_back({sums.name, errors_by_k(evidence, measure, tested_distribution, smallest_k,
                                               largest_k_of(measure), sums.rows)});
  return measured;
}

std::vector<Claim> square_claims() {
  std::vector<Claim> claims;
  for (const auto& [name, measure] : {std::pair{"max", max_error}, std::pair{"mred", mred}}) {
    for (const Baseline& baseline : baselines) add_reduction_claims(claims, baseline, name, measure);
    claims.push_back({fmt::format("le-gemm-{}-grows", name), [measure = measure](const Evidence& evidence) {
                        return growth_by_cpu_sums(evidence, measure);
                      }});
  }
  return claims;
}

PaperSweep squares_sweep() {
  return {.name = "",
          .lists = {{"schemes", schemes},
                    {"accumulators", {a800, sequential}},
                    {"distributions", {tested_distribution, positive_distribution}},
                    {"shapes", {"64x64x64", "128x128x128", "256x256x256", "512x512x512"}},
                    {"seeds", {"1", "2", "3"}},
                    {"max-elements", {"262144"}}}};
}

PaperSweep largest_square_sweep() {
  return {.name = "1024",
          .lists = {{"schemes", schemes},
                    {"accumulators", {a800, sequential}},
                    {"distributions", {tested_distribution}},
                    {"shapes", {"1024x1024x1024"}},
                    {"max-elements", {"1048576"}}}};
}

PaperSweep long_sweep() {
  return {.name = "long",
          .lists = {{"schemes", schemes},
                    {"accumulators", {a800}},
                    {"distributions", {tested_distribution}},
                    {"shapes", {"64x64x2048", "64x64x4096", "64x64x8192"}},
                    {"seeds", {"1", "2", "3"}}}};
}

// Returns the analysis whose errors compare with OpenBLAS's native product; the sweeps' compare with
// sequential sums.
Analysis against_openblas() {
  const std::vector<Shape> shapes{{64, 64, 64},   {128, 128, 128}, {256, 256, 256}, {512, 512, 512},
                                  {64, 64, 2048}, {64, 64, 4096},  {64, 64, 8192}};
  const ProductErrors study = on_the_a800(shapes, {1, 2, 3}, "cpu");
  return {.format = "product-errors",
          .make_document = [=](bool quick) { return product_errors({study}, quick); },
          .name = "openblas"};
}

PaperFigure fig10() {
  PaperFigure figure{.name = "le-gemm-fig10-11",
                     .paper = "le-gemm",
                     .place = "Figs. 10 and 11, section 5.3",
                     .subject = "Max_error and MRED against native fp32, square matrices",
                     .conditions =
                         "uniform on [-1, 1], the paper's range, and on [0, 1] for comparison; the A100's "
                         "model stands for the A800; the native product is sequential fp32 or OpenBLAS's for "
                         "the paper's CPU; every element is compared up to n = 1024, 64 x 64 of them above; "
                         "ratios are means over three seeds (the paper: ten experiments), one seed and [-1, "
                         "1] alone at 1024",
                     .sweeps = {squares_sweep(), largest_square_sweep(), long_sweep()},
                     .drawn = {.dimensions = {"m = n = k"}, .measures = {max_error, mred}},
                     .claims = square_claims()};
  figure.analysis = against_openblas();
  return figure;
}

PaperSweep application_sweep(const std::string& name, const std::string& distribution,
                             const std::vector<std::string>& lengths) {
  return {.name = name,
          .lists = {{"schemes", {"ootomo", "legemm", "native"}},
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
  double min_k;
  double max_k;
};

const Application applications[] = {
    {"k-means", "k-means", tested_distribution, 16, 128},
    {"feed-forward", "feed-forward", tested_distribution, 768, 3072},
    {"language-models", "language models", language_distribution, 1024, 8192}};

std::vector<Claim> application_claims() {
  std::vector<Claim> claims;
  for (const auto& [name, measure] : {std::pair{"max", max_error}, std::pair{"mred", mred}}) {
    for (const Application& application : applications)
      claims.push_back(
          {fmt::format("le-gemm-fig16-{}-{}", name, application.id),
           [application, measure = measure](const Evidence& evidence) {
             return Measured{{application.name, errors_by_k(evidence, measure, application.distribution,
                                                            application.min_k, application.max_k)}};
           },
           "Of so few terms the elements nearest to 0 decide, and they differ from seed to seed."});
  }
  return claims;
}

PaperFigure fig16() {
  return {.name = "le-gemm-fig16",
          .paper = "le-gemm",
          .place = "Fig. 16, section 5.5",
          .subject = "error against k for applications",
          .conditions =
              "64 x 64 elements, ten seeds as in the paper; k-means (16, 64, 128 features) and BERT's "
              "feed-forward layers (k = 768, 3072) on [-1, 1], the range of the paper's comparisons; linear "
              "transformations of language models (k = 1024 to 8192) on [0.5, 2.5], their data's range; the "
              "paper does not give these lengths",
          .sweeps = {application_sweep("", tested_distribution, {"16", "64", "128", "768", "3072"}),
                     application_sweep("language-models", language_distribution,
                                       {"1024", "2048", "4096", "8192"})},
          .drawn = {.dimensions = {"k"}, .measures = {max_error, mred}},
          .claims = application_claims()};
}

}  // namespace

std::vector<PaperFigure> le_gemm_figures() { return {fig10(), histogram_figure(), fig16(), trade_figure()}; }

}  // namespace kintsugi::tools
