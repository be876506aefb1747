// dgemm-tc Figs. 5 and 7, and Table 1: numbers of slices and products, and where the time goes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "accuracy/methods.hpp"
#include "lab/generators.hpp"
#include "reproduce/dgemm_tc.hpp"

namespace kintsugi::tools {

namespace {

const std::string dp = "ozaki-fp16:mode=dp";
const std::string cr = "ozaki-fp16:mode=cr";
const std::string cr_fp64 = "ozaki-fp64:mode=cr";
const std::string native = "native";

constexpr std::int64_t seed = 1;
constexpr std::int64_t counted_edge = 64;  // rows and columns of C where only slices are counted
constexpr std::int64_t quick_edge = 16;

std::vector<double> operand(const std::string& distribution, lab::Side side, std::int64_t rows,
                            std::int64_t columns) {
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  lab::fill(lab::parse_distribution(distribution), side, seed,
            core::MatrixView<double>{values.data(), rows, columns, columns, 1});
  return values;
}

// One product; of several runs the quickest.
Json product_row(const std::string& scheme, const std::string& distribution, const Shape& shape, int runs) {
  const std::vector<double> a = operand(distribution, lab::Side::a, shape.m, shape.k);
  const std::vector<double> b = operand(distribution, lab::Side::b, shape.k, shape.n);
  std::vector<double> c(static_cast<std::size_t>(shape.m * shape.n));
  const Handle handle = make_handle();
  const Plan plan = make_plan(handle.get(), shape, {Type::float64, scheme, "cpu", ""});
  Json row = {{"scheme", scheme}, {"distribution", distribution}, {"m", shape.m}, {"n", shape.n},
              {"k", shape.k},     {"seconds", HUGE_VAL}};
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    require(scheme, execute_product(handle.get(), plan, a.data(), b.data(), c.data()));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds >= row.at("seconds").get<double>()) continue;
    row["seconds"] = seconds;
    row["error_free"] =
        read_description("report", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
          return kintsugi_report(handle.get(), buffer, capacity, needed);
        }).at("error_free");
  }
  return row;
}

Json empty_document(bool quick) {
  Json result = document("slice-counts");
  result["samples"] = quick ? quick_edge : counted_edge;
  result["seed"] = seed;
  result["rows"] = Json::array();
  return result;
}

// Slices by k on a part of C, and the time of square products.
Json counts_document(const std::string& scheme, bool quick) {
  Json result = empty_document(quick);
  const std::vector<std::int64_t> lengths =
      quick ? std::vector<std::int64_t>{256, 512} : std::vector<std::int64_t>{1024, 2048, 4096, 7168, 10240};
  const std::vector<std::int64_t> edges =
      quick ? std::vector<std::int64_t>{48, 96} : std::vector<std::int64_t>{256, 768};
  const std::int64_t edge = quick ? quick_edge : counted_edge;
  for (const auto& distribution : dgemm_tc_distributions()) {
    for (const auto k : lengths)
      result["rows"].push_back(product_row(scheme, distribution, {edge, edge, k}, 1));
    for (const auto n : edges) result["rows"].push_back(product_row(scheme, distribution, {n, n, n}, 1));
  }
  return result;
}

Json table_document(bool quick) {
  Json result = empty_document(quick);
  const std::int64_t n = quick ? 96 : 512;
  for (const auto& distribution : dgemm_tc_distributions()) {
    for (const auto& scheme : {dp, cr, cr_fp64, native})
      result["rows"].push_back(product_row(scheme, distribution, {n, n, n}, quick ? 1 : 3));
  }
  return result;
}

bool is_square(const Json& row) { return row.at("m") == row.at("k"); }

double count(const Json& row, const char* name) { return row.at("error_free").at(name).get<double>(); }

double seconds_of(const Json& row, const char* part) {
  return row.at("error_free").at("seconds").at(part).get<double>();
}

std::vector<Json> rows_of(const Evidence& evidence, const std::string& distribution, bool square) {
  std::vector<Json> rows;
  for (const Json& row : evidence.rows()) {
    if (cell(row, "distribution") == distribution && is_square(row) == square) rows.push_back(row);
  }
  return rows;
}

// --------------------------------------------------------------- pictures

Picture line_picture(const std::string& title, const std::string& name, const std::string& x_label,
                     const std::string& y_label, const Json& document, bool square,
                     const std::function<double(const Json&)>& value) {
  Chart chart{title, x_label, y_label, false, {}, {}};
  chart.log_y = false;
  int colour = 0;
  for (const auto& distribution : dgemm_tc_distributions()) {
    Series series{distribution, colour++, 0, {}};
    for (const Json& row : document.at("rows")) {
      if (cell(row, "distribution") == distribution && is_square(row) == square)
        series.points.emplace_back(row.at("k").get<double>(), value(row));
    }
    chart.series.push_back(series);
  }
  return {chart, name, "", -1};
}

double product_share(const Json& row) {
  double all = 0;
  for (const char* part : {"split_a", "split_b", "products", "summation"}) all += seconds_of(row, part);
  return seconds_of(row, "products") / all;
}

std::vector<Figure> draw_counts(const Json& document) {
  const auto counted = [&](const char* member) {
    return line_picture(member, member, "k", "number", document, false,
                        [member](const Json& row) { return count(row, member); });
  };
  return {{"Slices and products", {counted("slices_a"), counted("slices_b"), counted("products")}},
          {"Time",
           {line_picture("Share of the products in the time", "share", "m = n = k", "share", document, true,
                         product_share)}}};
}

std::vector<Figure> draw_table(const Json& document) {
  Chart chart{"Time of a product", "phi", "seconds", false, {}, {}};
  int colour = 0;
  for (const auto& scheme : {dp, cr, cr_fp64, native}) {
    Series series{scheme, colour++, 0, {}};
    for (const Json& row : document.at("rows")) {
      if (cell(row, "scheme") == scheme)
        series.points.emplace_back(std::stod(cell(row, "distribution").substr(4)),
                                   row.at("seconds").get<double>());
    }
    chart.series.push_back(series);
  }
  return {{"Table 1", {{chart, "seconds", "", -1}}}};
}

// ----------------------------------------------------------------- claims

// At n = 7168 where it was counted, else at the longest k.
Json row_at_7168(const Evidence& evidence, const std::string& distribution) {
  const auto rows = rows_of(evidence, distribution, false);
  const auto found =
      std::find_if(rows.begin(), rows.end(), [](const Json& row) { return row.at("k") == 7168; });
  return found == rows.end() ? rows.back() : *found;
}

Answer products_at_7168(const Evidence& evidence) {
  const Json row = row_at_7168(evidence, "phi:0.1");
  const double d = count(row, "slices_a");
  const double products = count(row, "products");
  return agrees_if(
      products == 66, fmt::format("{} products, {} slices, at k = {}", products, d, cell(row, "k")),
      "Our grid is the same for both signs. The paper's fl((x + sigma) - sigma) rounds positive "
      "elements to a grid twice as coarse as negative ones, and spends up to a bit of each slice on it.");
}

Answer fast_products(const Evidence& evidence) {
  bool all = true;
  double most_slices = 0;
  for (const Json& row : evidence.rows()) {
    const double d = count(row, "slices_a");
    all = all && count(row, "products") == d * (d + 1) / 2;
    most_slices = std::max(most_slices, d);
  }
  return agrees_if(
      all, fmt::format("d (d + 1) / 2 of up to {} slices in {} rows", most_slices, evidence.rows().size()),
      "splitting ended before Algorithm 3 had enough");
}

Answer all_products(const Evidence& evidence) {
  bool all = true;
  double largest = 0;
  for (const Json& row : evidence.rows()) {
    all = all && count(row, "products") == count(row, "slices_a") * count(row, "slices_b");
    largest = std::max(largest, count(row, "products"));
  }
  return agrees_if(all, fmt::format("up to {} products", largest), "products are left out");
}

Answer slices_rise_with_range(const Evidence& evidence) {
  std::vector<double> counts;
  std::string text;
  for (const auto& distribution : dgemm_tc_distributions()) {
    counts.push_back(count(row_at_7168(evidence, distribution), "slices_a"));
    text += fmt::format("{}{}", text.empty() ? "" : ", ", counts.back());
  }
  return agrees_if(std::is_sorted(counts.begin(), counts.end()) && counts.front() < counts.back(),
                   text + " slices at phi = 0.1, 1, 2", "the number does not rise");
}

Answer products_dominate(const Evidence& evidence) {
  std::vector<double> shares;
  for (const auto& distribution : dgemm_tc_distributions())
    shares.push_back(100 * product_share(rows_of(evidence, distribution, true).back()));
  return agrees_if(least(shares) > 50, range_text(shares) + " % of the time at the largest size",
                   "sums and splits take as long there; their share falls with k");
}

Answer split_a_is_slower(const Evidence& evidence) {
  std::vector<double> values;
  for (const auto& distribution : dgemm_tc_distributions()) {
    const Json row = rows_of(evidence, distribution, true).back();
    values.push_back(seconds_of(row, "split_a") / seconds_of(row, "split_b"));
  }
  return agrees_if(least(values) > 1, range_text(values) + " times the time of B's",
                   "the search for the number of slices is lost in the noise");
}

double seconds_in_table(const Evidence& evidence, const std::string& scheme,
                        const std::string& distribution) {
  for (const Json& row : evidence.rows()) {
    if (cell(row, "scheme") == scheme && cell(row, "distribution") == distribution)
      return row.at("seconds").get<double>();
  }
  throw NoSuchRow("no row of " + scheme);
}

std::vector<double> time_ratios(const Evidence& evidence, const std::string& slower,
                                const std::string& quicker) {
  std::vector<double> values;
  for (const auto& distribution : dgemm_tc_distributions())
    values.push_back(seconds_in_table(evidence, slower, distribution) /
                     seconds_in_table(evidence, quicker, distribution));
  return values;
}

Answer dp_is_quicker(const Evidence& evidence) {
  const auto values = time_ratios(evidence, cr, dp);
  return agrees_if(least(values) > 1, "CR takes " + range_text(values) + " times as long as DP", "it is not");
}

Answer native_is_quicker(const Evidence& evidence) {
  const auto values = time_ratios(evidence, dp, native);
  return agrees_if(least(values) > 1, "DP takes " + range_text(values) + " times as long as native DGEMM",
                   "it is not");
}

Answer fp64_slices(const Evidence& evidence) {
  const auto values = time_ratios(evidence, cr, cr_fp64);
  return agrees_if(least(values) > 1,
                   "fp16 slices take " + range_text(values) + " times as long as FP64 ones",
                   "FP32 products are much quicker than FP64 ones here");
}

const char* const counted_conditions =
    "slices and products on 64 x 64 entries of C with k = 1024 to 10240, one block, so that Algorithm 3 sees "
    "fewer rows "
    "and columns than the paper's blocks of 3584; times of m = n = k = 256 and 768 on the engine cpu, "
    "OpenBLAS's SGEMM "
    "for the tensor cores; (rand - 0.5) exp(phi randn) as there";

PaperFigure counts_figure(const std::string& name, const std::string& place, const std::string& subject,
                          const std::string& scheme) {
  return {name,
          "dgemm-tc",
          place,
          subject,
          counted_conditions,
          {},
          {},
          {},
          {[scheme](bool quick) { return counts_document(scheme, quick); }, draw_counts}};
}

const Claim range_claim{"The wider the range of the elements, the more slices", "rises with phi",
                        slices_rise_with_range};
const Claim time_claim{"The products of slices dominate the time",
                       "about 70 % at n = 7168 (agrees: over 50 %)", products_dominate};

}  // namespace

PaperFigure dgemm_tc_dp_counts() {
  PaperFigure figure = counts_figure("dgemm-tc-fig5", "Fig. 5, section 5.2",
                                     "slices, products and the time's parts in DP mode", dp);
  figure.claims = {{"DP mode takes 66 products at n = 7168, phi = 0.1", "66: 11 slices", products_at_7168},
                   {"It runs in fast mode: d (d + 1) / 2 products", "d (d + 1) / 2", fast_products},
                   range_claim,
                   time_claim,
                   {"Splitting A, with the search for the number of slices, is slower than splitting B once",
                    "slightly", split_a_is_slower}};
  return figure;
}

PaperFigure dgemm_tc_cr_counts() {
  PaperFigure figure = counts_figure("dgemm-tc-fig7", "Fig. 7, section 5.2",
                                     "slices, products and the time's parts in CR mode", cr);
  figure.claims = {{"CR mode leaves out no product", "s_A s_B", all_products}, range_claim, time_claim};
  return figure;
}

PaperFigure dgemm_tc_table() {
  PaperFigure figure{
      "dgemm-tc-table1",
      "dgemm-tc",
      "Table 1, section 5.2",
      "times of the modes beside native DGEMM",
      "m = n = k = 512 instead of 10240; the quickest of three runs; a CPU whose FP64 rate is half of "
      "its FP32 rate, so nearer to the Tesla V100 than to the Titan RTX",
      {},
      {},
      {},
      {table_document, draw_table}};
  figure.claims = {
      {"DP mode is quicker than CR mode", "3.98 to 4.41 times (agrees: quicker)", dp_is_quicker},
      {"Native DGEMM is quicker than DP mode where FP64 is not held back",
       "6.4 to 8.5 times (V100; agrees: quicker)", native_is_quicker},
      {"Where FP64 is not held back, the scheme on FP64 products is quicker than on fp16 slices (CR)",
       "1.13 to 1.26 times (V100; agrees: quicker)", fp64_slices}};
  return figure;
}

}  // namespace kintsugi::tools
