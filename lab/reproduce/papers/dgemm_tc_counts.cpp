// dgemm-tc Figs. 5 and 7: numbers of slices and products.
#include <algorithm>
#include <chrono>

#include "lab/reproduce/papers/dgemm_tc.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/plan.hpp"

namespace kintsugi::tools {

namespace {

// Algorithms 1 and 3 as in the paper.
const std::string dp = "ozaki-fp16:grid=sigma:mode=dp";
const std::string sp = "ozaki-fp16:grid=sigma:mode=sp";
const std::string cr = "ozaki-fp16:grid=sigma:mode=cr";

constexpr std::int64_t seed = 1;
constexpr std::int64_t counted_edge = 64;           // rows and columns of C
constexpr std::int64_t quick_edge = 16;             // the same with --quick
constexpr std::int64_t tall_rows[] = {1024, 3584};  // rows of C that are tried besides, with the same columns

template <class T>
std::vector<T> operand(const std::string& distribution, measure::Side side, std::int64_t rows,
                       std::int64_t columns) {
  std::vector<T> values(static_cast<std::size_t>(rows * columns));
  measure::fill(measure::parse_distribution(distribution), side, seed,
                core::MatrixView<T>{values.data(), rows, columns, columns, 1});
  return values;
}

template <class T>
Json product_row(const std::string& scheme, const std::string& distribution, const Shape& shape) {
  const std::vector<T> a = operand<T>(distribution, measure::Side::a, shape.m, shape.k);
  const std::vector<T> b = operand<T>(distribution, measure::Side::b, shape.k, shape.n);
  std::vector<T> c(static_cast<std::size_t>(shape.m * shape.n));
  constexpr Type type = std::is_same_v<T, float> ? Type::float32 : Type::float64;
  const Handle handle = make_handle();
  const Plan plan = make_plan(handle.get(), shape, {type, scheme, "cpu", ""});
  const auto start = std::chrono::steady_clock::now();
  require(scheme, execute_product(handle.get(), plan, a.data(), b.data(), c.data()));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Json report =
      read_description("report", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
        return kintsugi_report(handle.get(), buffer, capacity, needed);
      });
  return {{"scheme", scheme},
          {"distribution", distribution},
          {"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"seconds", seconds},
          {"error_free", report.at("error_free")}};
}

// Returns the document of slice counts by scheme, range and k. The SP mode multiplies FP32 operands, the
// others FP64 ones.
Json counts_document(const std::vector<std::string>& schemes, bool quick) {
  Json result = document("slice-counts");
  result["samples"] = quick ? quick_edge : counted_edge;
  result["seed"] = seed;
  result["rows"] = Json::array();
  const std::vector<std::int64_t> lengths =
      quick ? std::vector<std::int64_t>{256, 512} : std::vector<std::int64_t>{1024, 2048, 4096, 7168, 10240};
  const std::int64_t edge = quick ? quick_edge : counted_edge;
  for (const auto& scheme : schemes) {
    for (const auto& distribution : dgemm_tc_distributions()) {
      for (const auto k : lengths)
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

// --------------------------------------------------------------- pictures

Picture line_picture(const std::string& member, const std::string& scheme, const Json& document) {
  Chart chart{.title = member, .x_label = "k", .y_label = "number", .log_x = false, .log_y = false};
  int colour = 0;
  for (const auto& distribution : dgemm_tc_distributions()) {
    Series series{distribution, colour++, 0, {}};
    for (const Json& row : document.at("rows")) {
      if (cell(row, "scheme") == scheme && cell(row, "distribution") == distribution &&
          row.at("m") == row.at("n"))
        series.points.emplace_back(row.at("k").get<double>(), count(row, member.c_str()));
    }
    chart.series.push_back(series);
  }
  return {.chart = chart, .name = member};
}

std::vector<Figure> draw_counts(const std::string& scheme, const Json& document) {
  return {{"Slices and products",
           {line_picture("slices_a", scheme, document), line_picture("slices_b", scheme, document),
            line_picture("products", scheme, document)}}};
}

// ----------------------------------------------------------------- claims

Filter of_scheme(const std::string& scheme) {
  return [scheme](const Json& row) { return cell(row, "scheme") == scheme; };
}

// Returns the rows with square C that pass the filter, in the order of counts_document(): by scheme, then
// range, the narrowest first, then k.
std::vector<Json> rows_of(const Evidence& evidence, const Filter& filter) {
  std::vector<Json> rows;
  for (const Json& row : evidence.rows()) {
    if (row.at("m") == row.at("n") && filter(row)) rows.push_back(row);
  }
  if (rows.empty()) throw NoSuchRow("no such row of slice counts");
  return rows;
}

Filter with_length(std::int64_t k) {
  return [k](const Json& row) { return row.at("k") == k; };
}

// Returns the products of the DP mode at k = 7168, one series for each number of rows of C.
Measured products_at_7168(const Evidence& evidence) {
  Measured measured;
  for (const Json& row : evidence.rows()) {
    if (cell(row, "scheme") == dp && cell(row, "distribution") == "phi:0.1" && row.at("k") == 7168)
      measured.push_back({fmt::format("{} rows", cell(row, "m")), {count(row, "products")}});
  }
  if (measured.empty()) throw NoSuchRow("no row of slice counts at k = 7168");
  return measured;
}

// Returns a series for each k: the slice counts at the paper's ranges, the narrowest first.
std::function<Measured(const Evidence&)> slices_by_range(const std::string& scheme) {
  return [scheme](const Evidence& evidence) {
    Measured measured;
    for (const std::int64_t k : {1024, 2048, 4096, 7168, 10240}) {
      std::vector<double> counts;
      for (const Json& row : rows_of(evidence, both(of_scheme(scheme), with_length(k))))
        counts.push_back(count(row, "slices_a"));
      measured.push_back({fmt::format("k = {}", k), counts});
    }
    return measured;
  };
}

// Returns the counts of one scheme over those of another, `divisor`, at the same range and k.
std::vector<double> count_ratios(const Evidence& evidence, const char* member, const std::string& scheme,
                                 const std::string& divisor, const Filter& filter) {
  const auto rows = rows_of(evidence, both(of_scheme(scheme), filter));
  const auto others = rows_of(evidence, both(of_scheme(divisor), filter));
  std::vector<double> values;
  for (std::size_t i = 0; i < rows.size(); ++i)
    values.push_back(count(rows[i], member) / count(others.at(i), member));
  return values;
}

Measured sp_over_dp(const Evidence& evidence) {
  Measured measured;
  for (const auto& distribution : dgemm_tc_distributions())
    measured.push_back({dgemm_tc_range(distribution),
                        count_ratios(evidence, "slices_a", sp, dp, in_distribution(distribution))});
  return measured;
}

Measured cr_over_dp(const Evidence& evidence) {
  return {{"slices", count_ratios(evidence, "slices_a", cr, dp, everywhere())},
          {"products", count_ratios(evidence, "products", cr, dp, everywhere())}};
}

// Returns the counted products over the number that the mode's formula gives for the row's slices.
std::function<Measured(const Evidence&)> products_over(const std::string& scheme,
                                                       double (*formula)(const Json& row)) {
  return [=](const Evidence& evidence) {
    Measured measured;
    for (const auto& distribution : dgemm_tc_distributions()) {
      std::vector<double> values;
      for (const Json& row : rows_of(evidence, both(of_scheme(scheme), in_distribution(distribution))))
        values.push_back(count(row, "products") / formula(row));
      measured.push_back({dgemm_tc_range(distribution), values});
    }
    return measured;
  };
}

// Formulas of the paper: the fast mode multiplies slices i and j with i + j up to the number of slices, the
// other mode all of them.
double fast_products(const Json& row) { return count(row, "slices_a") * (count(row, "slices_a") + 1) / 2; }
double all_products(const Json& row) { return count(row, "slices_a") * count(row, "slices_b"); }

PaperFigure counts_figure(const std::string& name, const std::string& place, const std::string& subject,
                          const std::vector<std::string>& schemes) {
  return {.name = name,
          .paper = "dgemm-tc",
          .place = place,
          .subject = subject,
          .conditions =
              "64 x 64 elements of C with k = 1024 to 10240, one block, so that Algorithm 3 sees fewer rows "
              "and columns than the paper's blocks of 3584, whose rows are tried at k = 7168; Algorithms 1 "
              "and 3 literally (grid=sigma), (rand - 0.5) exp(phi randn) as there; times are not compared, "
              "since they are those of a CPU",
          .analysis = {
              .format = "slice-counts",
              .make_document = [schemes](bool quick) { return counts_document(schemes, quick); },
              .draw = [schemes](const Json& document) { return draw_counts(schemes.front(), document); }}};
}

}  // namespace

PaperFigure dgemm_tc_dp_counts() {
  PaperFigure figure =
      counts_figure("dgemm-tc-fig5", "Fig. 5, section 5.2", "slices and products in DP mode", {dp, sp});
  figure.claims = {{"dgemm-tc-66", products_at_7168},
                   {"dgemm-tc-range-dp", slices_by_range(dp)},
                   {"dgemm-tc-sp-fewer", sp_over_dp},
                   {"dgemm-tc-fast-count", products_over(dp, fast_products)}};
  return figure;
}

PaperFigure dgemm_tc_cr_counts() {
  PaperFigure figure =
      counts_figure("dgemm-tc-fig7", "Fig. 7, section 5.2", "slices and products in CR mode", {cr, dp});
  figure.claims = {{"dgemm-tc-range-cr", slices_by_range(cr)},
                   {"dgemm-tc-cr-more", cr_over_dp},
                   {"dgemm-tc-cr-count", products_over(cr, all_products)}};
  return figure;
}

}  // namespace kintsugi::tools
