#include "demo/page.hpp"

#include <algorithm>
#include <iterator>

#include "report/charts/looks.hpp"
#include "report/figures.hpp"
#include "report/page.hpp"
#include "report/rates.hpp"

namespace kintsugi::tools {

namespace {

enum class YAxis : std::uint8_t { linear, logarithmic };

// Returns a picture that plots value(check) of each row's check over n. The rows are results of rate_row().
Picture check_picture(const std::vector<Json>& rows, const std::string& name, const std::string& label,
                      YAxis y_axis, const std::function<double(const Json& check)>& value) {
  Looks looks(rows);
  Chart chart{
      .title = label, .x_label = "m = n = k", .y_label = label, .log_y = y_axis == YAxis::logarithmic};
  for (const Json& row : rows) {
    const Json& bench = row.at("bench");
    const std::string scheme = cell(row, "scheme");
    const Series series = looks.series_of(row, scheme, product_text(bench));
    add_point(series_in(chart, series), bench.at("problem").at("n").get<double>(), value(bench.at("check")));
  }
  return {.chart = chart, .name = name};
}

// Returns figures with errors and shares of correctly rounded elements, for each type of operands.
std::vector<Figure> check_figures(const std::vector<Json>& rows) {
  const auto error = [](const Json& check) { return read_number(check.at("max_componentwise")); };
  const auto rounded = [](const Json& check) {
    return 100 * check.at("correctly_rounded_fraction").get<double>();
  };
  std::vector<Figure> figures;
  for (const char* type : {"fp32", "fp64"}) {
    std::vector<Json> rows_of_type;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(rows_of_type),
                 [&](const Json& row) { return cell(row.at("problem"), "type") == type; });
    if (rows_of_type.empty()) continue;
    figures.push_back({fmt::format("{}: largest error of the checked elements", type),
                       {check_picture(rows_of_type, "error", "largest |C - R| / (|A||B|), R exact",
                                      YAxis::logarithmic, error)}});
    figures.push_back(
        {fmt::format("{}: correctly rounded elements", type),
         {check_picture(rows_of_type, "rounded", "% of the checked elements that are correctly rounded",
                        YAxis::linear, rounded)}});
  }
  return figures;
}

std::string preface_of(const Demo& demo) {
  std::string html = "<p>" + escaped(demo_subject(demo)) + "</p>\n<ul>\n";
  for (const std::string& sentence : demo_sentences(demo)) html += "<li>" + escaped(sentence) + "</li>\n";
  html += "</ul>\n<div class=\"wide\"><table>\n<thead><tr>";
  for (const std::string& head : demo_heads(demo)) html += "<th>" + escaped(head) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& row : demo_rows(demo)) {
    html += "<tr>";
    for (const std::string& text : demo_cells(demo, row)) html += "<td>" + escaped(text) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

}  // namespace

std::string demo_subject(const Demo& demo) {
  const Json& settings = demo.runs.front().at("settings");
  return fmt::format(
      "Square products of matrices of {} elements, {}; every result was checked against the exact one "
      "before it was timed.",
      cell(settings, "distribution"),
      demo.on_device ? "in the memory of " + cell(demo.runs.front().at("device"), "name")
                     : "FP64, by OpenBLAS and by Kintsugi, with 1 and with 2 threads");
}

std::vector<std::string> demo_heads(const Demo& demo) {
  return {"product",
          "n",
          "type",
          "threads",
          "bits of C",
          "correctly rounded",
          "error / |A||B|",
          "time",
          demo.on_device ? "TFLOP/s" : "GFLOP/s",
          demo.on_device ? "x cuBLAS" : "x native"};
}

std::vector<std::string> demo_cells(const Demo& demo, const Json& row) {
  const Json& check = row.at("check");
  return {product_text(row),
          cell(row.at("problem"), "n"),
          cell(row.at("problem"), "type"),
          demo.on_device ? "-" : cell(row, "threads"),
          cell(row, "bits"),
          fmt::format("{:.4g} %", 100 * check.at("correctly_rounded_fraction").get<double>()),
          fmt::format("{:.2g}", read_number(check.at("max_componentwise"))),
          time_text(read_number(row.at("time").at("median"))),
          fmt::format("{:.4g}", (demo.on_device ? 1e-12 : 1e-9) * read_number(row.at("rate"))),
          fmt::format("{:.3g}", read_number(row.at("ratios").at("native")))};
}

std::string demo_page(const Demo& demo, const std::string& command) {
  std::vector<Source> sources;
  std::vector<Json> rows;
  for (const Json& run : demo.runs) {
    sources.push_back({fmt::format("run {}", sources.size() + 1), run, command});
    for (const Json& row : run.at("rows")) rows.push_back(rate_row(run, row));
  }
  std::vector<Figure> figures = make_figures(rows);
  for (Figure& figure : check_figures(rows)) figures.push_back(std::move(figure));
  const char* title = demo.on_device ? "Kintsugi beside cuBLAS" : "Kintsugi beside OpenBLAS";
  return report_page({title, preface_of(demo)}, sources, rows, figures);
}

}  // namespace kintsugi::tools
