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

// How many times smaller the error of `better` is, on the average over seeds; each size, the least first.
std::vector<double> reductions(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                               const std::string& better, const char* measure,
                               const std::string& distribution) {
  const Filter where = in_distribution(distribution);
  std::vector<double> means;
  for (const double k : evidence.lengths(where))
    means.push_back(mean(ratios(evidence.pairs(on(accumulator, scheme), on(accumulator, better), measure,
                                               both(where, of_length(k))))));
  return means;
}

std::string listed(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.3g}", text.empty() ? "" : ", ", value);
  return text;
}

std::string reductions_text(const Evidence& evidence, const char* accumulator, const std::string& scheme,
                            const char* measure) {
  const auto by_size = reductions(evidence, accumulator, scheme, "legemm", measure, tested);
  return fmt::format("{:.3g} on [-1, 1] ({} by size; {:.3g} on [0, 1])", mean(by_size), listed(by_size),
                     mean(reductions(evidence, accumulator, scheme, "legemm", measure, positive)));
}

// The same direction, and within a factor of two.
Answer on_a800(const Evidence& evidence, const std::string& scheme, const char* measure, double theirs,
               const std::string& reason) {
  const double ours = mean(reductions(evidence, a800, scheme, "legemm", measure, tested));
  std::string text = reductions_text(evidence, a800, scheme, measure);
  if (scheme == "ootomo")
    text +=
        "; with Ootomo's sums left in the unit " + reductions_text(evidence, a800, ootomo_inside, measure);
  return agrees_if(ours > 1 && ours > theirs / 2 && ours < theirs * 2, text, reason);
}

// What the paper's ratios say of Markidis's scheme against fp16 alone, and ours.
std::string markidis_text(const Evidence& evidence, const char* measure, double theirs) {
  return fmt::format(
      "; by the paper's ratios Markidis's scheme itself errs {:.2g} times less than fp16 alone there, here "
      "{:.3g} times with sequential fp32 sums and {:.3g} on the A100's model",
      theirs, mean(reductions(evidence, sequential, "fp16", "markidis", measure, tested)),
      mean(reductions(evidence, a800, "fp16", "markidis", measure, tested)));
}

Answer on_mi210(const Evidence& evidence, const std::string& scheme, const char* measure,
                double markidis_gain) {
  std::string text = "with sequential fp32 sums " + reductions_text(evidence, sequential, scheme, measure);
  std::string reason = "There is no model of the MI210's matrix cores, and sequential fp32 is not that chip.";
  if (scheme == "markidis") {
    text += markidis_text(evidence, measure, markidis_gain);
    reason +=
        " With neither of the two models does Markidis's scheme lose so much: what it loses on that chip "
        "comes neither from its split nor from a sum in fp32 or a truncated one.";
  }
  return undecidable(text, reason);
}

struct Ratio {
  const char* scheme;
  const char* name;
  double a800_max_error;
  double a800_mred;
  double mi210_max_error;
  double mi210_mred;
  const char* reason;
};

constexpr Ratio paper_ratios[] = {
    {"fp16", "a product of fp16 alone", 571.75, 814.87, 377.33, 636.92,
     "Eq. 19 is an extreme: on [-1, 1] the entry nearest to 0 decides it, and it cannot exceed 1, which fp16 "
     "reaches where its sign is wrong. The ratio falls as the size grows, so that the mean depends on the "
     "sizes, which the text does not give."},
    {"markidis", "Markidis's scheme", 2.78, 1.75, 74.82, 178.93,
     "Both leave all of k in the unit, so that its truncation weighs most in both."},
    {"ootomo", "Ootomo's scheme", 1.41, 1.28, 2.69, 1.12,
     "Ootomo's scheme adds outside of the unit, in fp32 to nearest, and so escapes the truncation that "
     "le-gemm's accumulators over all of k suffer. The paper wrote it with the WMMA interface and does not "
     "say whether its sums leave the unit; where they do not, the two differ less, but le-gemm's slices, cut "
     "instead of rounded, keep 21 bits for 23 (h2sgemm-table1)."}};

Claim a800_claim(const Ratio& ratio, const char* measure) {
  const bool largest = measure == max_error;
  const double theirs = largest ? ratio.a800_max_error : ratio.a800_mred;
  return {fmt::format("A800: {} is so many times smaller than with {}", largest ? "Max_error" : "MRED",
                      ratio.name),
          fmt::format("{} times (agrees: within a factor of 2)", theirs), [=](const Evidence& evidence) {
            return on_a800(evidence, ratio.scheme, measure, theirs, ratio.reason);
          }};
}

Claim mi210_claim(const Ratio& ratio, const char* measure) {
  const bool largest = measure == max_error;
  const Ratio& single = paper_ratios[0];
  const double gain =
      largest ? single.mi210_max_error / ratio.mi210_max_error : single.mi210_mred / ratio.mi210_mred;
  return {fmt::format("MI210: {} is so many times smaller than with {}", largest ? "Max_error" : "MRED",
                      ratio.name),
          fmt::format("{} times", largest ? ratio.mi210_max_error : ratio.mi210_mred),
          [=](const Evidence& evidence) { return on_mi210(evidence, ratio.scheme, measure, gain); }};
}

std::vector<Claim> ratio_claims() {
  std::vector<Claim> claims;
  for (const Ratio& ratio : paper_ratios) {
    for (const char* measure : {max_error, mred}) {
      claims.push_back(a800_claim(ratio, measure));
      claims.push_back(mi210_claim(ratio, measure));
    }
  }
  return claims;
}

// legemm's mean error of every k, the least k first.
std::vector<double> errors_by_k(const Evidence& evidence, const char* measure, const Filter& where) {
  std::vector<double> means;
  for (const double k : evidence.lengths(where))
    means.push_back(mean(evidence.errors(on(a800, "legemm"), measure, both(where, of_length(k)))));
  return means;
}

Answer grows_with_k(const Evidence& evidence, const std::string& distribution) {
  const auto largest = errors_by_k(evidence, max_error, in_distribution(distribution));
  const auto average = errors_by_k(evidence, mred, in_distribution(distribution));
  return agrees_if(largest.back() > largest.front() && average.back() > average.front(),
                   fmt::format("Max_error {}; MRED {}, the least k first", listed(largest), listed(average)),
                   "One of them does not grow.");
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
  PaperFigure figure{"le-gemm-fig10-11",
                     "le-gemm",
                     "Figs. 10 and 11, section 5.3",
                     "Max_error and MRED against native fp32, square matrices",
                     "uniform on [-1, 1], the paper's range, on which claims are judged, and on [0, 1] for "
                     "comparison; the A100's model stands for the A800; the native product is sequential "
                     "fp32 for the paper's CPU; every entry is compared; ratios are means over three seeds, "
                     "then over sizes (the paper: ten experiments), one seed and [-1, 1] alone at 1024",
                     {squares_sweep(), largest_square_sweep()},
                     {{"m = n = k"}, {max_error, mred}},
                     ratio_claims()};
  figure.claims.push_back({"Max_error and MRED grow with k ([-1, 1], A800)", "grow",
                           [](const Evidence& evidence) { return grows_with_k(evidence, tested); }});
  return figure;
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

Answer fp16_is_widest(const Evidence& evidence) {
  const double single = share_of(evidence, a800, "fp16", 1e-5);
  const double refined = share_of(evidence, a800, "legemm", 1e-5);
  return agrees_if(
      single < refined,
      fmt::format("{:.1f} % of the entries within 1e-5, {:.1f} % with legemm", 100 * single, 100 * refined),
      "it is not the widest");
}

std::string shares_text(const Evidence& evidence, const char* accumulator, const std::string& other) {
  return fmt::format("{:.1f} % and {:.1f} %", 100 * share_of(evidence, accumulator, "legemm", 1e-6),
                     100 * share_of(evidence, accumulator, other, 1e-6));
}

Answer narrower_than(const Evidence& evidence, const std::string& scheme, const std::string& reason) {
  std::string text =
      shares_text(evidence, a800, scheme) + " of the entries within 1e-6 with legemm and " + scheme;
  if (scheme == "ootomo")
    text += "; with Ootomo's sums left in the unit " + shares_text(evidence, a800, ootomo_inside);
  const bool narrower = share_of(evidence, a800, "legemm", 1e-6) > share_of(evidence, a800, scheme, 1e-6);
  return agrees_if(narrower, text, reason);
}

Answer like_ootomo(const Evidence& evidence) {
  const double refined = share_of(evidence, a800, "legemm", 1e-6);
  const double other = share_of(evidence, a800, "ootomo", 1e-6);
  return agrees_if(refined > other / 2 && refined < other * 2,
                   shares_text(evidence, a800, "ootomo") +
                       " of the entries within 1e-6; with Ootomo's sums left in the unit " +
                       shares_text(evidence, a800, ootomo_inside),
                   "They are alike where Ootomo's sums stay in the unit as le-gemm's do.");
}

Answer on_mi210_histograms(const Evidence& evidence) {
  return undecidable("with sequential fp32 sums " + shares_text(evidence, sequential, "markidis") +
                         " of the entries within 1e-6 with legemm and markidis, " +
                         shares_text(evidence, a800, "markidis") + " on the A100's model",
                     "There is no model of the MI210's matrix cores, and sequential fp32 is not that chip.");
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
      {{"A product of fp16 alone has the widest distribution", "widest", fp16_is_widest},
       {"Le-gemm's is narrower than that of Markidis's scheme", "narrower",
        [](const Evidence& evidence) {
          return narrower_than(evidence, "markidis", "Markidis's is narrower on the A100's model.");
        }},
       {"It gains more over Markidis's scheme on the MI210", "more", on_mi210_histograms},
       {"Le-gemm's and Ootomo's distributions are similar", "similar (agrees: within a factor of 2)",
        like_ootomo},
       {"Le-gemm's is more concentrated around 0 than that of Ootomo's scheme", "more concentrated",
        [](const Evidence& evidence) { return narrower_than(evidence, "ootomo", paper_ratios[2].reason); }}}};
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
          {{"Max_error and MRED grow with k, k-means and feed-forward layers", "grow",
            [](const Evidence& evidence) { return grows_with_k(evidence, tested); }},
           {"Max_error and MRED grow with k, language models", "grow",
            [](const Evidence& evidence) { return grows_with_k(evidence, language); }}}};
}

}  // namespace

std::vector<PaperFigure> le_gemm_figures() { return {fig10(), fig12(), fig16()}; }

}  // namespace kintsugi::tools
