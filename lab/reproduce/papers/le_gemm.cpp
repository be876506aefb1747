// le-gemm Figs. 10 to 13, 16 and 18, and the fourth term.
#include <cmath>

#include "lab/accuracy/case.hpp"
#include "lab/reproduce/product_errors.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* max_error = "le_gemm_max_error";
constexpr const char* mred = "le_gemm_mred";
const std::vector<std::pair<const char*, const char*>> both_measures{{"max", max_error}, {"mred", mred}};
// Ootomo's split and products, all of k summed in the unit.
const std::string ootomo_inside = "split-n:a=2:b=2:terms=3:scale=11:block=0";
const std::vector<std::string> schemes{"fp16", "markidis", "ootomo", ootomo_inside, "legemm", "native"};

// The A800's tensor cores are those of the A100, the MI210's matrix cores those of CDNA 2.
constexpr const char* a800 = "a100";
constexpr const char* mi210 = "cdna2";
constexpr const char* sequential = "fp32";

const std::string tested_distribution = "uniform";           // all comparisons of the paper (section 5)
const std::string positive_distribution = "uniform01";       // ours
const std::string language_distribution = "language-model";  // language models' data (section 5.5)

SchemeOnEngine on_reference(const char* accumulator, const std::string& scheme) {
  return {scheme, "reference", accumulator};
}

// Order of the sums of the CPU's native FP32 product, which the paper does not give. Rows of sweeps compare
// with sequential sums.
struct CpuSums {
  std::string name;
  std::string engine;
  Filter rows;
};
const std::vector<CpuSums> cpu_sums{{"sequential CPU sums", "reference", of_sweeps()},
                                    {"OpenBLAS's CPU sums", "cpu", against_native("cpu")}};

// Errors of all schemes on these units against the native product of an engine.
ProductErrors on_units(const std::vector<const char*>& units, const std::vector<Shape>& shapes,
                       const std::vector<std::uint64_t>& seeds, const std::string& engine,
                       std::int64_t max_elements = 262144) {
  std::vector<SchemeOnEngine> methods;
  for (const char* unit : units) methods.push_back(on_reference(unit, ""));
  return {.schemes = {"fp16", "markidis", "ootomo", ootomo_inside, "legemm"},
          .methods = methods,
          .distributions = {tested_distribution},
          .shapes = shapes,
          .seeds = seeds,
          .native = engine,
          .max_elements = max_elements};
}

// Labels of Ootomo's scheme with partial sums added outside the unit, and with all of k summed inside it.
const std::string outside_label = "sums outside";
const std::string inside_label = "sums inside";

// Explanation of why le-gemm and Ootomo's scheme differ.
constexpr const char* escapes_truncation =
    "Sums that leave the unit are added in fp32 to nearest and escape the truncation that le-gemm's "
    "accumulators over all of k suffer. Where Ootomo's sums stay inside the two differ less, but le-gemm's "
    "slices, cut instead of rounded, hold 21 bits for 23 (h2sgemm-table1).";

// --------------------------------------------------------- Figs. 10 and 11

constexpr double max_k_with_all_elements = 1024;  // beyond it only a part of C's elements is compared

// Returns the largest k for a measure: Max_error needs all elements, so it is not taken from a part of C.
double largest_k_of(const char* measure) { return measure == max_error ? max_k_with_all_elements : HUGE_VAL; }

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
  const auto growth = [&](const CpuSums& sums) {
    return SeriesValues{sums.name, errors_by_k(evidence, measure, tested_distribution, smallest_k,
                                               largest_k_of(measure), sums.rows)};
  };
  return series_of(growth, cpu_sums);
}

std::vector<Claim> square_claims() {
  std::vector<Claim> claims;
  for (const auto& [name, measure] : both_measures) {
    claims.push_back({fmt::format("le-gemm-{}-grows", name), [measure = measure](const Evidence& evidence) {
                        return growth_by_cpu_sums(evidence, measure);
                      }});
  }
  return claims;
}

const std::vector<Shape> openblas_shapes{{64, 64, 64},   {128, 128, 128}, {256, 256, 256}, {512, 512, 512},
                                         {64, 64, 2048}, {64, 64, 4096},  {64, 64, 8192}};

PaperFigure fig10() {
  return {
      .name = "le-gemm-fig10-11",
      .paper = "le-gemm",
      .place = "Figs. 10 and 11, section 5.3",
      .subject = "Max_error and MRED against native fp32, square matrices",
      .conditions =
          "uniform on [-1, 1], the paper's range, and on [0, 1] for comparison; the A100's "
          "model stands for the A800; the native product is sequential fp32 or OpenBLAS's for "
          "the paper's CPU; every element is compared up to n = 1024, 64 x 64 of them above; "
          "ratios are means over three seeds (the paper: ten experiments), one seed and [-1, "
          "1] alone at 1024",
      .sweeps = {{.name = "",
                  .lists = {{"schemes", schemes},
                            {"accumulators", {a800, sequential}},
                            {"distributions", {tested_distribution, positive_distribution}},
                            {"shapes", {"64x64x64", "128x128x128", "256x256x256", "512x512x512"}},
                            {"seeds", {"1", "2", "3"}},
                            {"max-elements", {"262144"}}}},
                 {.name = "1024",
                  .lists = {{"schemes", schemes},
                            {"accumulators", {a800, sequential}},
                            {"distributions", {tested_distribution}},
                            {"shapes", {"1024x1024x1024"}},
                            {"max-elements", {"1048576"}}}},
                 {.name = "long",
                  .lists = {{"schemes", schemes},
                            {"accumulators", {a800}},
                            {"distributions", {tested_distribution}},
                            {"shapes", {"64x64x2048", "64x64x4096", "64x64x8192"}},
                            {"seeds", {"1", "2", "3"}}}}},
      .drawn = {.dimensions = {"m = n = k"}, .measures = {max_error, mred}},
      .claims = square_claims(),
      // Errors against OpenBLAS's native product; the sweeps' are against sequential sums.
      .analysis = product_errors_analysis("openblas", {on_units({a800}, openblas_shapes, {1, 2, 3}, "cpu")})};
}

// --------------------------------------------------------- Figs. 12 and 13

// Limits of the difference to native for which shares are compared: the paper calls one histogram narrower
// than another and gives no number.
const std::vector<std::pair<std::string, double>> limits{
    {"1e-7", 1e-7}, {"1e-6", 1e-6}, {"1e-5", 1e-5}, {"1e-4", 1e-4}};

// Returns the share of the elements whose difference to a CPU's native product is within the limit.
double share_against_native(const Evidence& evidence, const std::string& scheme, double limit,
                            const CpuSums& sums, const char* unit = a800) {
  const auto rows = evidence.rows_of(on_reference(unit, scheme), against_native(sums.engine));
  for (const Json& share : rows.front().at("shares")) {
    if (share.at("limit").get<double>() == limit) return share.at("share").get<double>();
  }
  throw NoSuchRow(fmt::format("no share within {} of {}", limit, scheme));
}

// Returns the shares of a scheme over those of each of the others.
Measured share_ratios(const Evidence& evidence, const std::string& scheme,
                      const std::vector<std::string>& others, const std::string& label_prefix = "") {
  const auto ratios = [&](const CpuSums& sums, const auto& limit) {
    SeriesValues series{fmt::format("{}within {}, {}", label_prefix, limit.first, sums.name), {}};
    for (const auto& other : others)
      series.values.push_back(share_against_native(evidence, scheme, limit.second, sums) /
                              share_against_native(evidence, other, limit.second, sums));
    return series;
  };
  return series_of(ratios, cpu_sums, limits);
}

Measured claim_over_others(const Evidence& evidence) {
  return share_ratios(evidence, "fp16", {"markidis", "ootomo", ootomo_inside, "legemm"});
}

// The paper claims a narrower error range and a smaller maximum error than Markidis's; both are measured.
Measured claim_over_markidis(const Evidence& evidence) {
  const auto ratios = [&](const CpuSums& sums) {
    return SeriesValues{"Max_error, " + sums.name,
                        evidence.ratios(on_reference(a800, "markidis"), on_reference(a800, "legemm"),
                                        max_error, against_native(sums.engine))};
  };
  return joined(share_ratios(evidence, "legemm", {"markidis"}), series_of(ratios, cpu_sums));
}

// Returns by how much the advantage over Markidis's scheme is larger on the MI210 than on the A800.
Measured claim_over_markidis_on_mi210(const Evidence& evidence) {
  const auto advantage = [&](const CpuSums& sums, double limit, const char* unit) {
    return share_against_native(evidence, "legemm", limit, sums, unit) /
           share_against_native(evidence, "markidis", limit, sums, unit);
  };
  const auto ratio = [&](const CpuSums& sums, const auto& limit) {
    return SeriesValues{fmt::format("within {}, {}", limit.first, sums.name),
                        {advantage(sums, limit.second, mi210) / advantage(sums, limit.second, a800)}};
  };
  return series_of(ratio, cpu_sums, limits);
}

Measured claim_over_ootomo(const Evidence& evidence) {
  return joined(share_ratios(evidence, "legemm", {"ootomo"}, outside_label + ", "),
                share_ratios(evidence, "legemm", {ootomo_inside}, inside_label + ", "));
}

PaperFigure histogram_figure() {
  return {.name = "le-gemm-fig12-13",
          .paper = "le-gemm",
          .place = "Figs. 12 and 13, section 5.3",
          .subject = "histograms of the relative difference to native fp32",
          .conditions =
              "uniform on [-1, 1], the paper's range; 512 x 512 elements at the paper's k = 1024; "
              "the A100's model for the A800, CDNA 2's for the MI210; the native product is "
              "sequential fp32 or OpenBLAS's for the paper's CPU",
          .sweeps = {{.name = "",
                      .lists = {{"schemes", schemes},
                                {"accumulators", {a800, sequential}},
                                {"distributions", {tested_distribution}},
                                {"shapes", {"512x512x1024"}},
                                {"histogram", {"true"}},
                                {"max-elements", {"262144"}}}}},
          .drawn = {.dimensions = {"none"}, .measures = {}},
          .claims = {{"le-gemm-hist-wmma", claim_over_others},
                     {"le-gemm-hist-mark", claim_over_markidis},
                     {"le-gemm-hist-mark-mi210", claim_over_markidis_on_mi210},
                     {"le-gemm-hist-similar", claim_over_ootomo, escapes_truncation},
                     {"le-gemm-hist-ooto", claim_over_ootomo, escapes_truncation}},
          .analysis = product_errors_analysis("shares",
                                              {on_units({a800, mi210}, {{512, 512, 1024}}, {1}, "reference"),
                                               on_units({a800, mi210}, {{512, 512, 1024}}, {1}, "cpu")})};
}

// ---------------------------------------------------------------- Fig. 16

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

// Le-gemm's errors against OpenBLAS's native product; the sweeps' are against sequential sums.
ProductErrors application_errors(const std::string& distribution, const std::vector<std::int64_t>& lengths) {
  std::vector<Shape> shapes;
  for (const std::int64_t k : lengths) shapes.push_back({64, 64, k});
  return {.schemes = {"legemm"},
          .methods = {on_reference(a800, "")},
          .distributions = {distribution},
          .shapes = shapes,
          .seeds = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
          .native = "cpu"};
}

std::vector<Claim> application_claims() {
  std::vector<Claim> claims;
  for (const auto& [name, measure] : both_measures) {
    for (const Application& application : applications)
      claims.push_back(
          {fmt::format("le-gemm-fig16-{}-{}", name, application.id),
           [application, measure = measure](const Evidence& evidence) {
             const auto errors = [&](const CpuSums& sums) {
               return SeriesValues{fmt::format("{}, {}", application.name, sums.name),
                                   errors_by_k(evidence, measure, application.distribution, application.min_k,
                                               application.max_k, sums.rows)};
             };
             return series_of(errors, cpu_sums);
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
          .claims = application_claims(),
          .analysis = product_errors_analysis(
              "openblas", {application_errors(tested_distribution, {16, 64, 128, 768, 3072}),
                           application_errors(language_distribution, {1024, 2048, 4096, 8192})})};
}

// ---------------------------------------------------------------- Fig. 18

constexpr const char* mean_relative = "mean_relative";

// Returns the errors of FAST_16F over LE-GEMM's, and LE-GEMM's over those of 64F, by k. Operands of type
// fp64 are not those of type fp32, which changes the errors by far less than their ratios.
Measured ratios_of_neighbours(const Evidence& evidence) {
  Measured measured{{"FAST_16F over LE-GEMM", {}}, {"LE-GEMM over 64F", {}}};
  for (const double k : evidence.lengths(everywhere())) {
    const auto error = [&](const SchemeOnEngine& method, const char* type) {
      const Filter of_type = [=](const Json& row) { return row.at("problem").at("type") == type; };
      return mean(evidence.errors(method, mean_relative, both(at_k(k), of_type)));
    };
    const double legemm = error(on_reference(a800, "legemm"), "fp32");
    measured[0].values.push_back(error(on_reference(a800, "fp16"), "fp32") / legemm);
    measured[1].values.push_back(legemm / error(on_reference("", "native"), "fp64"));
  }
  return measured;
}

PaperFigure trade_figure() {
  return {.name = "le-gemm-fig18",
          .paper = "le-gemm",
          .place = "Fig. 18, section 5.7",
          .subject = "errors of cuBLAS's FP16 and FP64 modes beside LE-GEMM",
          .conditions =
              "64 x 64 elements of squares of m = n = k on [-1, 1], three seeds; the A100's model stands for "
              "the A800, fp16 for CUBLAS_COMPUTE_32F_FAST_16F, sequential FP64 sums for CUBLAS_COMPUTE_64F",
          .sweeps = {{.name = "",
                      .lists = {{"schemes", {"fp16", "legemm", "native"}},
                                {"accumulators", {a800}},
                                {"types", {"fp32", "fp64"}},
                                {"distributions", {tested_distribution}},
                                {"m", {"64"}},
                                {"n", {"64"}},
                                {"k", {"256", "512", "1024", "2048", "4096", "8192"}},
                                {"seeds", {"1", "2", "3"}}}}},
          .drawn = {.dimensions = {"k"}, .measures = {mean_relative}},
          .claims = {{"le-gemm-trade-error", ratios_of_neighbours}}};
}

// ------------------------------------------------------- the fourth term

// The split of section 4.1: the high slice is cut, the residual times 2^10 is truncated.
double low_slice(float element) {
  constexpr int fraction_bits = 10;
  constexpr int scale = 10;
  const auto cut = [](double value) {
    if (value == 0) return 0.0;
    const double unit = std::ldexp(1.0, std::max(std::ilogb(value), -14) - fraction_bits);
    return unit * std::trunc(value / unit);
  };
  return std::ldexp(cut(std::ldexp(element - cut(element), scale)), -scale);
}

// Adds to C the products of the low slices, exactly but for one rounding of each element to FP32.
void add_fourth_term(std::vector<float>& c, const Shape& shape, const std::vector<float>& a,
                     const std::vector<float>& b) {
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < shape.k; ++p)
        sum += low_slice(a[static_cast<std::size_t>(i * shape.k + p)]) *
               low_slice(b[static_cast<std::size_t>(p * shape.n + j)]);
      float& element = c[static_cast<std::size_t>(i * shape.n + j)];
      element = static_cast<float>(element + sum);
    }
  }
}

constexpr const char* three_terms = "mean relative error, three terms";
constexpr const char* four_terms = "mean relative error, four terms";

Json fourth_term_document(bool quick) {
  constexpr std::uint64_t seed = 1;
  const std::int64_t edge = quick ? 16 : 64;
  Json result = analysis_document("quantities", edge, seed);
  for (const std::int64_t k :
       quick ? std::vector<std::int64_t>{64, 256} : std::vector<std::int64_t>{64, 1024, 8192}) {
    const Shape shape{edge, edge, k};
    const auto a = random_elements<float>(tested_distribution, measure::Side::a, seed, shape.m, k);
    const auto b = random_elements<float>(tested_distribution, measure::Side::b, seed, k, shape.n);
    ComparedCase<float> compared(shape, a, b, shape.m * shape.n);
    TimedProduct<float> product = compared.multiply({Type::float32, "legemm", "reference", a800});
    for (const char* quantity : {three_terms, four_terms}) {
      if (quantity == four_terms) add_fourth_term(product.c, shape, a, b);
      compared.compare(product, nullptr);
      result["rows"].push_back({{"quantity", quantity},
                                {"value", read_number(product.errors.at("mean_relative"))},
                                {"scheme", "legemm"},
                                {"distribution", tested_distribution},
                                {"k", k},
                                {"seed", seed}});
    }
  }
  return result;
}

Measured without_fourth_term(const Evidence& evidence) {
  Measured measured;
  for (const Json& row : evidence.rows_where(where("quantity", three_terms))) {
    const auto others = evidence.rows_where(both(where("quantity", four_terms), where("k", row.at("k"))));
    measured.push_back({fmt::format("k = {}", cell(row, "k")),
                        {row.at("value").get<double>() / others.front().at("value").get<double>()}});
  }
  return measured;
}

PaperFigure fourth_term_figure() {
  return {
      .name = "le-gemm-fourth-term",
      .paper = "le-gemm",
      .place = "Eqs. 9 and 10, section 4.1",
      .subject = "error without the product of both low slices",
      .conditions =
          "uniform on [-1, 1], 64 x 64 elements, k = 64 to 8192, the A100's model for the A800; the "
          "fourth term is added in FP64",
      .claims =
          {{"le-gemm-fourth-term", without_fourth_term,
            "The residuals of a cut have one sign with their number, so that their product is up to 2^-20 "
            "of the element's magnitudes and not on both sides of zero."}},
      .analysis = {.format = "quantities", .make_document = fourth_term_document}};
}

}  // namespace

std::vector<PaperFigure> le_gemm_figures() {
  return {fig10(), histogram_figure(), fig16(), trade_figure(), fourth_term_figure()};
}

}  // namespace kintsugi::tools
