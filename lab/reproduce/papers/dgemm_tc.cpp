// dgemm-tc Figs. 3 and 8: accuracy of the DP and SP modes compared with native products, and of the CR mode,
// which is correctly rounded. Figs. 5 and 7: numbers of slices and products. Section 3.2: fast mode.
#include <cmath>

#include "lab/accuracy/case.hpp"
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

// The distributions of the paper, by their ranges, the narrowest first.
const std::vector<std::string> distributions{"phi:0.1", "phi:1", "phi:2"};

// Returns a series for each range, named by the range, "phi = 0.1", and `suffix`. values(filter) returns the
// values of the rows that pass the filter, which are those of the range.
Measured by_range(const std::string& suffix,
                  const std::function<std::vector<double>(const Filter&)>& values) {
  const auto series = [&](const std::string& distribution) {
    return SeriesValues{"phi = " + distribution.substr(4) + suffix, values(in_distribution(distribution))};
  };
  return series_of(series, distributions);
}

// --------------------------------------------------------- Figs. 3 and 8

constexpr const char* max_relative = "max_relative";
const SchemeOnEngine native{"native", "cpu", ""};
// Algorithm 1 as in the paper: the DP mode for FP64 operands, the SP mode for FP32.
const SchemeOnEngine dp_or_sp{"ozaki-fp16:grid=sigma", "cpu", "fp32"};
const SchemeOnEngine cr_fp16{"ozaki-fp16:grid=sigma:mode=cr", "cpu", "fp32"};
const SchemeOnEngine cr_fp64{"ozaki-fp64:grid=sigma", "cpu", "fp64"};

PaperSweep sweep_of(const std::string& name, const char* type, const std::vector<std::string>& schemes,
                    const char* engine, const std::vector<std::string>& shapes,
                    const std::vector<std::string>& seeds) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"types", {type}},
                    {"engines", {engine}},
                    {"distributions", distributions},
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
const std::vector<std::pair<std::string, SchemeOnEngine>> native_sums{
    {"OpenBLAS's sums", native}, {"sequential sums", {"native", "reference", ""}}};

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// Returns a series for each size, native product and range. Its values are geometric means over seeds. A
// single seed says little: the maximum relative error is the error of the element that cancels most, and this
// error differs much from seed to seed.
Measured errors_over_native(const Evidence& evidence) {
  Measured measured;
  for (const double k : evidence.lengths(from_k(min_k_of_paper))) {
    for (const auto& [name, method] : native_sums) {
      const auto errors = [&, &method = method](const Filter& filter) {
        return std::vector{
            geometric_mean(evidence.ratios(dp_or_sp, method, max_relative, both(filter, at_k(k))))};
      };
      measured = joined(measured, by_range(fmt::format(", k = {}, {}", k, name), errors));
    }
  }
  return measured;
}

Measured cr_over_native(const Evidence& evidence) {
  return by_range(
      "", [&](const Filter& filter) { return evidence.ratios(cr_fp16, native, max_relative, filter); });
}

Measured correctly_rounded(const Evidence& evidence) {
  const auto shares = [&](const SchemeOnEngine& method, const std::string& suffix) {
    return by_range(suffix, [&](const Filter& filter) {
      return evidence.errors(method, "correctly_rounded_fraction", filter);
    });
  };
  return joined(shares(cr_fp16, ", fp16 slices"), shares(cr_fp64, ", FP64 slices"));
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
          "m = n = k of 128 to 512; 64 x 64 elements with the paper's k of 1024 to 10240, two seeds, of CR "
          "mode one seed at 1024, 4096 and 10240; "
          "OpenBLAS's and a sequential DGEMM stand for cublasDgemm; at most 4096 elements of C, against the "
          "exact result; Algorithm 1 literally (grid=sigma)",
      .sweeps = {sweep_of("", "fp64", {dp_or_sp.scheme, cr_fp16.scheme, cr_fp64.scheme, "native"}, "cpu",
                          squares, {"1"}),
                 sweep_of("long", "fp64", {dp_or_sp.scheme, "native"}, "cpu", paper_lengths, two_seeds),
                 sweep_of("sequential", "fp64", {"native"}, "reference", paper_lengths, two_seeds),
                 sweep_of("rounded", "fp64", {cr_fp16.scheme}, "cpu",
                          {"64x64x1024", "64x64x4096", "64x64x10240"}, {"1"})},
      .drawn = {.dimensions = {"m = n = k", "parameter of the distribution"}, .measures = {max_relative}},
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
          .drawn = {.dimensions = {"m = n = k", "parameter of the distribution"}, .measures = {max_relative}},
          .claims = {{"dgemm-tc-fig8-sp", errors_over_native, counts_a_kept_slice}}};
}

// --------------------------------------------------------- Figs. 5 and 7

// Algorithms 1 and 3 as in the paper.
const std::string dp = "ozaki-fp16:grid=sigma:mode=dp";
const std::string sp = "ozaki-fp16:grid=sigma:mode=sp";
const std::string cr = "ozaki-fp16:grid=sigma:mode=cr";

constexpr std::uint64_t seed = 1;
constexpr std::int64_t counted_edge = 64;           // rows and columns of C
constexpr std::int64_t quick_edge = 16;             // the same with --quick
constexpr std::int64_t tall_rows[] = {1024, 3584};  // rows of C that are tried besides, with the same columns
const std::vector<std::int64_t> counted_lengths{1024, 2048, 4096, 7168, 10240};

template <class T>
Json product_row(const std::string& scheme, const std::string& distribution, const Shape& shape) {
  const TimedProduct<T> product =
      timed_product(shape, {type_of<T>, scheme, "cpu", ""},
                    random_elements<T>(distribution, measure::Side::a, seed, shape.m, shape.k),
                    random_elements<T>(distribution, measure::Side::b, seed, shape.k, shape.n));
  return {{"scheme", scheme},
          {"distribution", distribution},
          {"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"seconds", product.seconds},
          {"error_free", product.report.at("error_free")}};
}

// Returns the document of slice counts by scheme, range and k. The SP mode multiplies FP32 operands, the
// others FP64 ones.
Json counts_document(const std::vector<std::string>& schemes, bool quick) {
  const std::int64_t edge = quick ? quick_edge : counted_edge;
  Json result = analysis_document("slice-counts", edge, seed);
  for (const auto& scheme : schemes) {
    for (const auto& distribution : distributions) {
      for (const auto k : quick ? std::vector<std::int64_t>{256, 512} : counted_lengths)
        result["rows"].push_back(scheme == sp ? product_row<float>(scheme, distribution, {edge, edge, k})
                                              : product_row<double>(scheme, distribution, {edge, edge, k}));
    }
  }
  // Algorithm 3 takes the largest d over all rows of a block of C, so the number of rows matters; the paper's
  // blocks have 3584. Tried for the first scheme of Fig. 5 only.
  if (schemes.front() == dp && !quick) {
    for (const std::int64_t rows : tall_rows)
      result["rows"].push_back(product_row<double>(dp, "phi:0.1", {rows, edge, 7168}));
  }
  return result;
}

// Returns slices_a, slices_b or products.
double count(const Json& row, const char* name) { return row.at("error_free").at(name).get<double>(); }

// Returns the filter for rows of a scheme with square C.
Filter of_scheme(const std::string& scheme) {
  return [scheme](const Json& row) { return cell(row, "scheme") == scheme && row.at("m") == row.at("n"); };
}

std::vector<Figure> draw_counts(const std::string& scheme, const Json& document) {
  Figure figure{"Slices and products", {}};
  for (const char* member : {"slices_a", "slices_b", "products"}) {
    Chart chart{.title = member, .x_label = "k", .y_label = "number", .log_x = false, .log_y = false};
    for (const auto& distribution : distributions) {
      const Filter drawn = both(of_scheme(scheme), in_distribution(distribution));
      chart.series.push_back(
          line_of({distribution, static_cast<int>(chart.series.size()), 0, {}}, document, "k",
                  [&](const Json& row) { return drawn(row) ? Json(count(row, member)) : Json(); }));
    }
    figure.pictures.push_back({.chart = chart, .name = member});
  }
  return {figure};
}

// Returns the rows of a scheme with square C that pass the filter, in the order of counts_document(): by
// range, the narrowest first, then k.
std::vector<Json> rows_of(const Evidence& evidence, const std::string& scheme, const Filter& filter) {
  std::vector<Json> rows = evidence.rows_where(both(of_scheme(scheme), filter));
  if (rows.empty()) throw NoSuchRow("no such row of slice counts");
  return rows;
}

// Returns the products of the DP mode at k = 7168, one series for each number of rows of C.
Measured products_at_7168(const Evidence& evidence) {
  const Filter filter = both(where("scheme", dp), both(in_distribution("phi:0.1"), where("k", 7168)));
  Measured measured;
  for (const Json& row : evidence.rows_where(filter))
    measured.push_back({fmt::format("{} rows", cell(row, "m")), {count(row, "products")}});
  if (measured.empty()) throw NoSuchRow("no row of slice counts at k = 7168");
  return measured;
}

// Returns a series for each k: the slice counts at the paper's ranges, the narrowest first.
std::function<Measured(const Evidence&)> slices_by_range(const std::string& scheme) {
  return [scheme](const Evidence& evidence) {
    const auto slices = [&](std::int64_t k) {
      SeriesValues series{fmt::format("k = {}", k), {}};
      for (const Json& row : rows_of(evidence, scheme, where("k", k)))
        series.values.push_back(count(row, "slices_a"));
      return series;
    };
    return series_of(slices, counted_lengths);
  };
}

// Returns the counts of one scheme over those of another, `divisor`, at the same range and k.
std::vector<double> count_ratios(const Evidence& evidence, const char* member, const std::string& scheme,
                                 const std::string& divisor, const Filter& filter) {
  const auto rows = rows_of(evidence, scheme, filter);
  const auto others = rows_of(evidence, divisor, filter);
  std::vector<double> values;
  for (std::size_t i = 0; i < rows.size(); ++i)
    values.push_back(count(rows[i], member) / count(others.at(i), member));
  return values;
}

Measured sp_over_dp(const Evidence& evidence) {
  return by_range("",
                  [&](const Filter& filter) { return count_ratios(evidence, "slices_a", sp, dp, filter); });
}

Measured cr_over_dp(const Evidence& evidence) {
  return {{"slices", count_ratios(evidence, "slices_a", cr, dp, everywhere())},
          {"products", count_ratios(evidence, "products", cr, dp, everywhere())}};
}

// Returns the counted products over the number that the mode's formula gives for the row's slices.
std::function<Measured(const Evidence&)> products_over(const std::string& scheme,
                                                       double (*formula)(const Json& row)) {
  return [=](const Evidence& evidence) {
    return by_range("", [&](const Filter& filter) {
      std::vector<double> values;
      for (const Json& row : rows_of(evidence, scheme, filter))
        values.push_back(count(row, "products") / formula(row));
      return values;
    });
  };
}

// Formulas of the paper: the fast mode multiplies slices i and j with i + j up to the number of slices, the
// other mode all of them.
double fast_products(const Json& row) { return count(row, "slices_a") * (count(row, "slices_a") + 1) / 2; }
double all_products(const Json& row) { return count(row, "slices_a") * count(row, "slices_b"); }

// ------------------------------------------- what counts say of printed rates

// Figures that the paper prints, in TFLOP/s: section 5.1 (peaks), section 5.2 and Table 1 (rates, k = 10240).
struct PrintedRates {
  const char* name;
  double tensor_cores;  // theoretical peak
  double fp64;          // cublasDgemm
  double dp[3];         // DP mode at phi = 0.1, 1 and 2
};
constexpr PrintedRates titan_rtx{"Titan RTX", 130.49856, 0.5341, {0.9724, 0.8230, 0.7131}};
constexpr PrintedRates v100{"V100", 113.0496, 6.761, {1.064, 0.9143, 0.7908}};
constexpr double titan_rtx_fp32_peak = 16.31232;
constexpr double best_dp_rate = 0.980;     // at n = 7168, phi = 0.1
constexpr double gemm_ex_throughput = 92;  // of cublasGemmEx there
constexpr std::int64_t length_of_table_1 = 10240;

// Returns the products of a scheme at the paper's ranges, the narrowest first.
std::vector<double> products_at(const Evidence& evidence, const std::string& scheme, std::int64_t k) {
  std::vector<double> products;
  for (const Json& row : rows_of(evidence, scheme, where("k", k))) products.push_back(count(row, "products"));
  return products;
}

Measured ceiling_of_v100(const Evidence& evidence) {
  const std::vector<double> products = products_at(evidence, dp, length_of_table_1);
  return by_range("", [&, i = std::size_t{0}](const Filter&) mutable {
    return std::vector{v100.tensor_cores / products.at(i++) / v100.fp64};
  });
}

Measured slowdown_by_counts(const Evidence& evidence) {
  const std::vector<double> products = products_at(evidence, dp, length_of_table_1);
  const auto over_rates = [&](const PrintedRates& device) {
    SeriesValues series{fmt::format("{}, counts over rates", device.name), {}};
    for (std::size_t i = 1; i < products.size(); ++i)
      series.values.push_back(products[i] / products[0] / (device.dp[0] / device.dp[i]));
    return series;
  };
  return {{"share lost from phi = 0.1 to 2, by counts", {1 - products.front() / products.back()}},
          over_rates(titan_rtx),
          over_rates(v100)};
}

double products_of_best_rate(const Evidence& evidence) {
  constexpr std::int64_t length = 7168;
  return products_at(evidence, dp, length).front();
}

Measured share_of_peak(const Evidence& evidence) {
  return {{"66 products at 980 GFLOP/s",
           {products_of_best_rate(evidence) * best_dp_rate / titan_rtx.tensor_cores}}};
}

Measured share_of_time(const Evidence& evidence) {
  return {{"products at 92 TFLOP/s", {products_of_best_rate(evidence) * best_dp_rate / gemm_ex_throughput}}};
}

Measured titan_over_dgemm(const Evidence& evidence) {
  constexpr double boosted_dgemm = 0.539;  // abstract
  constexpr double share = 0.7;            // of the time that cublasGemmEx takes
  SeriesValues of_table{"Table 1", {}};
  for (const double rate : titan_rtx.dp) of_table.values.push_back(rate / titan_rtx.fp64);
  return {of_table,
          {"counts, share and throughput",
           {share * gemm_ex_throughput / products_of_best_rate(evidence) / boosted_dgemm}}};
}

Measured ceiling_of_sgemm(const Evidence& evidence) {
  constexpr double reached_by_sgemm = 21.7 / 29.8;  // of cuBLAS on an RTX 3090, by MixPert's Table 1
  const std::vector<double> single = products_at(evidence, sp, length_of_table_1);
  const std::vector<double> twice = products_at(evidence, dp, length_of_table_1);
  Measured measured{{"over SGEMM", {}}, {"over DGEMM-TC", {}}};
  for (std::size_t i = 0; i < single.size(); ++i) {
    measured[0].values.push_back(titan_rtx.tensor_cores / single[i] /
                                 (reached_by_sgemm * titan_rtx_fp32_peak));
    measured[1].values.push_back(twice.at(i) / single[i]);
  }
  return measured;
}

// ------------------------------------------------------------ section 3.2

constexpr const char* largest_error = "largest relative error";
const std::string fast_off = dp_or_sp.scheme + ":fast=off";
const std::string as_many_slices = "as many slices as CR mode, fast mode";
const std::vector<std::int64_t> fast_lengths{1024, 4096};
// Elements of which few slices hold all bits: section 3.2 restricts fast mode's operands in no way.
const std::string held_by_fp32 = "uniform, held by FP32";

// Adds the errors of DP mode with and without fast mode, of fast mode with as many slices as CR mode finds,
// and of native products, on the same operands.
void add_fast_rows(Json& rows, const std::string& distribution, const Shape& shape, std::uint64_t case_seed) {
  const auto operand = [&](measure::Side side, std::int64_t height, std::int64_t width) {
    if (distribution != held_by_fp32)
      return random_elements<double>(distribution, side, case_seed, height, width);
    const std::vector<float> elements = random_elements<float>("uniform", side, case_seed, height, width);
    return std::vector<double>(elements.begin(), elements.end());
  };
  ComparedCase<double> compared(shape, operand(measure::Side::a, shape.m, shape.k),
                                operand(measure::Side::b, shape.k, shape.n), shape.m * shape.n);
  const auto add = [&](const std::string& name, TimedProduct<double> product) {
    compared.compare(product, nullptr);
    rows.push_back({{"quantity", largest_error},
                    {"value", read_number(product.errors.at(max_relative))},
                    {"scheme", name},
                    {"distribution", distribution},
                    {"k", shape.k},
                    {"seed", case_seed}});
    return product.report;
  };
  const auto multiply = [&](const std::string& scheme, const char* engine) {
    return compared.multiply({type_of<double>, scheme, engine, ""});
  };
  for (const std::string& scheme : {dp_or_sp.scheme, fast_off}) add(scheme, multiply(scheme, "cpu"));
  const Json counts = add(cr_fp16.scheme, multiply(cr_fp16.scheme, "cpu")).at("error_free");
  const double slices = std::max(counts.at("slices_a").get<double>(), counts.at("slices_b").get<double>());
  add(as_many_slices, multiply(fmt::format("{}:slices={:.0f}", dp_or_sp.scheme, slices), "cpu"));
  for (const auto& [name, method] : native_sums) add(name, multiply("native", method.engine.c_str()));
}

Json fast_document(bool quick) {
  const std::int64_t edge = quick ? quick_edge : counted_edge;
  Json result = analysis_document("quantities", edge, seed);
  for (const auto& distribution : distributions) {
    for (const std::int64_t k : quick ? std::vector<std::int64_t>{256} : fast_lengths) {
      for (std::uint64_t case_seed = 1; case_seed <= (quick ? 1U : 2U); ++case_seed)
        add_fast_rows(result["rows"], distribution, {edge, edge, k}, case_seed);
    }
  }
  for (std::uint64_t case_seed = 1; case_seed <= (quick ? 1U : 2U); ++case_seed)
    add_fast_rows(result["rows"], held_by_fp32, {edge, edge, quick ? 256 : fast_lengths.front()}, case_seed);
  return result;
}

// Returns the errors of a scheme, by seed.
std::vector<double> largest_errors(const Evidence& evidence, const std::string& scheme,
                                   const Filter& filter) {
  std::vector<double> errors;
  for (const Json& row : evidence.rows_where(both(where("scheme", scheme), filter)))
    errors.push_back(row.at("value").get<double>());
  if (errors.empty()) throw NoSuchRow("no error of " + scheme);
  return errors;
}

// Returns what fast mode adds to the error, over that of native products.
Measured loss_of_fast(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, method] : native_sums) {
    for (const auto& distribution : distributions) {
      for (const std::int64_t k : fast_lengths) {
        const Filter filter = both(in_distribution(distribution), where("k", k));
        const auto error = [&](const std::string& scheme) {
          return geometric_mean(largest_errors(evidence, scheme, filter));
        };
        measured.push_back({fmt::format("phi = {}, k = {}, {}", distribution.substr(4), k, name),
                            {(error(dp_or_sp.scheme) - error(fast_off)) / error(name)}});
      }
    }
  }
  return measured;
}

// Returns the largest of all ratios of errors: the paper says that fast mode may err more.
Measured fast_with_all_slices(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, method] : native_sums) {
    const auto errors = largest_errors(evidence, as_many_slices, everywhere());
    const auto of_native = largest_errors(evidence, name, everywhere());
    double largest = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) largest = std::max(largest, errors[i] / of_native.at(i));
    measured.push_back({name, {largest}});
  }
  return measured;
}

PaperFigure fast_figure() {
  return {
      .name = "dgemm-tc-fast",
      .paper = "dgemm-tc",
      .place = "section 3.2",
      .subject = "what fast mode loses",
      .conditions =
          "64 x 64 elements of C, k = 1024 and 4096, two seeds, Algorithm 1 literally (grid=sigma); operands "
          "that FP32 holds, at k = 1024, beside the paper's; OpenBLAS's and a sequential DGEMM stand for cublasDgemm",
      .claims =
          {{"dgemm-tc-fast-loss", loss_of_fast,
            "It is up to a sixth of DGEMM's own error: with d slices the products that fast mode leaves out are "
            "as large as what d slices leave of an element."},
           {"dgemm-tc-fast-all", fast_with_all_slices}},
      .analysis = {.format = "quantities", .make_document = fast_document}};
}

// ------------------------------------------ section 3.2, slices by accuracy

const std::vector<double> accuracies{1e-6, 1e-10, 1e-14};

std::string fewest_slices(double accuracy) { return fmt::format("slices for {:.0e}", accuracy); }

// Adds the fewest slices whose products, in fast mode, are as accurate as that in the Frobenius norm.
void add_slice_rows(Json& rows, const std::string& distribution, const Shape& shape) {
  ComparedCase<double> compared(
      shape, random_elements<double>(distribution, measure::Side::a, seed, shape.m, shape.k),
      random_elements<double>(distribution, measure::Side::b, seed, shape.k, shape.n), shape.m * shape.n);
  int slices = 1;
  for (const double accuracy : accuracies) {
    for (;; ++slices) {
      TimedProduct<double> product = compared.multiply(
          {type_of<double>, fmt::format("{}:slices={}", dp_or_sp.scheme, slices), "cpu", ""});
      compared.compare(product, nullptr);
      if (read_number(product.errors.at("frobenius_relative")) <= accuracy) break;
    }
    rows.push_back({{"quantity", fewest_slices(accuracy)},
                    {"value", slices},
                    {"distribution", distribution},
                    {"k", shape.k}});
  }
}

Json slices_document(bool quick) {
  const std::int64_t edge = quick ? quick_edge : counted_edge / 2;
  Json result = analysis_document("quantities", edge, seed);
  for (const auto& distribution : distributions)
    for (const std::int64_t k : quick ? std::vector<std::int64_t>{256} : counted_lengths)
      add_slice_rows(result["rows"], distribution, {edge, edge, k});
  return result;
}

Measured slices_by_length(const Evidence& evidence) {
  Measured measured;
  for (const double accuracy : accuracies) {
    const auto values = [&](const Filter& filter) {
      std::vector<double> slices;
      for (const Json& row : evidence.rows_where(both(where("quantity", fewest_slices(accuracy)), filter)))
        slices.push_back(row.at("value").get<double>());
      return slices;
    };
    measured = joined(measured, by_range(fmt::format(", {:.0e}", accuracy), values));
  }
  return measured;
}

PaperFigure slices_figure() {
  return {.name = "dgemm-tc-slices",
          .paper = "dgemm-tc",
          .place = "section 3.2",
          .subject = "slices that an accuracy takes, by k",
          .conditions =
              "32 x 32 elements of C with k = 1024 to 10240, fast mode, Algorithm 1 literally (grid=sigma), "
              "(rand - 0.5) exp(phi randn); the fewest slices with an error of 1e-6, 1e-10 and 1e-14 in the "
              "Frobenius norm",
          .claims = {{"dgemm-tc-k-slices", slices_by_length}},
          .analysis = {.format = "quantities", .make_document = slices_document}};
}

PaperFigure counts_figure(const std::string& name, const std::string& place, const std::string& subject,
                          const std::vector<std::string>& schemes, const std::vector<Claim>& claims) {
  return {.name = name,
          .paper = "dgemm-tc",
          .place = place,
          .subject = subject,
          .conditions =
              "64 x 64 elements of C with k = 1024 to 10240, one block, so that Algorithm 3 sees fewer rows "
              "and columns than the paper's blocks of 3584, whose rows are tried at k = 7168; Algorithms 1 "
              "and 3 literally (grid=sigma), (rand - 0.5) exp(phi randn) as there; times are not compared, "
              "since they are those of a CPU",
          .claims = claims,
          .analysis = {
              .format = "slice-counts",
              .make_document = [schemes](bool quick) { return counts_document(schemes, quick); },
              .draw = [schemes](const Json& document) { return draw_counts(schemes.front(), document); }}};
}

}  // namespace

std::vector<PaperFigure> dgemm_tc_figures() {
  return {accuracy_of_dp(),
          counts_figure("dgemm-tc-fig5", "Fig. 5, section 5.2", "slices and products in DP mode", {dp, sp},
                        {{"dgemm-tc-66", products_at_7168},
                         {"dgemm-tc-titan", titan_over_dgemm},
                         {"dgemm-tc-v100", ceiling_of_v100},
                         {"dgemm-tc-phi-speed", slowdown_by_counts},
                         {"dgemm-tc-of-peak", share_of_peak},
                         {"dgemm-tc-share-70", share_of_time},
                         {"dgemm-tc-dominated", share_of_time},
                         {"dgemm-tc-sgemm-speed", ceiling_of_sgemm},
                         {"dgemm-tc-range-dp", slices_by_range(dp)},
                         {"dgemm-tc-sp-fewer", sp_over_dp},
                         {"dgemm-tc-fast-count", products_over(dp, fast_products)}}),
          counts_figure("dgemm-tc-fig7", "Fig. 7, section 5.2", "slices and products in CR mode", {cr, dp},
                        {{"dgemm-tc-range-cr", slices_by_range(cr)},
                         {"dgemm-tc-cr-more", cr_over_dp},
                         {"dgemm-tc-cr-count", products_over(cr, all_products)}}),
          accuracy_of_sp(),
          fast_figure(),
          slices_figure()};
}

}  // namespace kintsugi::tools
