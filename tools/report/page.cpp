#include "report/page.hpp"

#include <algorithm>

#include "report/charts.hpp"

namespace kintsugi::tools {

namespace {

std::string ratios_text(const Json& ratios) {
  std::string text;
  for (const auto& [name, ratio] : ratios.items())
    text += fmt::format("{}{:.3g} x {}", text.empty() ? "" : ", ", read_number(ratio), name);
  return text;
}

// True if a device was timed. Files of older versions lack "by" for times of the host's clock.
bool on_device(const Json& row) { return row.at("time").value("by", "clock") != "clock"; }

std::string number_text(const Json& number) {
  return number.is_null() ? "-" : fmt::format("{:.4g}", read_number(number));
}

// Returns the batch count; files of older versions have no batches.
std::int64_t batch_of(const Json& row) { return row.at("problem").value("batch", std::int64_t{1}); }

// Returns the conditions that distinguish lines of the same scheme: device or threads, batch, prepared
// operand.
std::string conditions_text(const Json& document, const Json& row) {
  std::string text =
      on_device(row) ? cell(document.at("device"), "name") : "threads: " + cell(row, "threads");
  if (batch_of(row) > 1) text += fmt::format(" · batch: {}", batch_of(row));
  const std::string prepared = cell(row, "prepared");
  return prepared.empty() ? text : text + " · prepared: " + prepared;
}

HeadedCells rate_cells(const Json& row) {
  const Json& problem = row.at("problem");
  const Json& time = row.at("time");
  const Json& workspace = row.at("workspace_bytes");
  return {{"distribution", cell(row, "distribution")},
          {"candidate", cell(row, "name")},
          {"ran", cell(row, "scheme")},
          {"engine", cell(row, "engine")},
          {"m", cell(problem, "m")},
          {"n", cell(problem, "n")},
          {"k", cell(problem, "k")},
          {"type", cell(problem, "type")},
          {"batch", fmt::format("{}", batch_of(row))},
          {"prepared", cell(row, "prepared")},
          {"threads", cell(row, "threads")},
          {"computed", cell(row.at("computed"), "m") + " x " + cell(row.at("computed"), "n")},
          {"quickest", seconds_text(time.at("minimum"))},
          {"median", seconds_text(time.at("median"))},
          {"GFLOP/s", fmt::format("{:.4g}", 1e-9 * read_number(row.at("rate")))},
          {"of the baselines", ratios_text(row.at("ratios"))},
          {"of its units", percent_text(row.value("of_ceiling", Json()))},
          {"W", number_text(row.value("power_watts", Json()))},
          {"MHz", number_text(row.value("clock_mhz", Json()))},
          {"largest error", check_text(row.at("check"))},
          {"workspace", workspace.is_null() ? "-" : bytes_text(read_number(workspace))},
          {"its kernels", cell(row, "engine_details")}};
}

// Returns the table of the rows of rate_row(); "" if there are none.
std::string rate_table(const std::vector<Json>& rows) {
  std::vector<HeadedCells> cells;
  for (const Json& row : rows) {
    if (is_rate_row(row)) cells.push_back(rate_cells(row.at("bench")));
  }
  return cells.empty() ? "" : "<h2>All rates</h2>\n" + html_table(cells);
}

std::string page_style() {
  std::string style =
      chart_style() +
      "body{font:15px/1.45 sans-serif;max-width:1280px;margin:1rem auto;padding:0 .8rem}ul{padding-left:1.2rem}"
      "h1{font-size:1.4rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}svg{max-width:100%;height:auto}"
      "main{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,370px),1fr));column-gap:1rem}"
      "main>*{min-width:0}main>h2,main>p,main>div{grid-column:1/-1}"
      ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:12.5px}"
      "td,th{padding:.15rem .5rem;border-bottom:1px solid;text-align:right;"
      "white-space:nowrap}td:nth-child(-n+5),th:nth-child(-n+5){text-align:left}.prose{white-space:normal;"
      "min-width:8rem;vertical-align:top}"
      "table{margin-bottom:.8rem}@media(max-width:600px){table{font-size:11px}td,th{padding:.15rem .2rem}}"
      "code{overflow-wrap:anywhere}.no{font-weight:bold}.chart{display:none}\n";
  for (std::size_t i = 0; i < measures.size(); ++i)
    style += fmt::format("#measure{0}:checked~main .measure{0}{{display:block}}\n", i);
  return style;
}

// Returns "; on NVIDIA H200: at most 850 T/s fp16, 4.26 T/s copy".
std::string device_text(const Json& document) {
  const Json device = document.value("device", Json());
  if (device.is_null()) return "";
  std::string text = "; on " + cell(device, "name");
  const char* separator = ": at most ";
  for (const auto& [name, ceiling] : document.at("ceilings").items()) {
    text += fmt::format("{}{:.4g} T/s {}", separator, 1e-12 * read_number(ceiling.at("rate")), name);
    separator = ", ";
  }
  return text;
}

std::string source_item(const Source& source) {
  const Json& machine = source.document.at("machine");
  return fmt::format(
      "<li>{}: {} rows; Kintsugi {}, commit {}; {}, {} threads, {}{}<br/><code>{}</code></li>\n",
      escaped(source.name), source.document.at("rows").size(), escaped(cell(source.document, "version")),
      escaped(cell(source.document, "commit")), escaped(cell(machine, "processor")), cell(machine, "threads"),
      escaped(cell(machine, "system")), escaped(device_text(source.document)), escaped(source.command));
}

// Returns the label of a measure in the figures; "" if it is not drawn.
std::string drawn_label(const std::vector<Figure>& figures, int measure) {
  for (const Figure& figure : figures) {
    for (const Picture& picture : figure.pictures) {
      if (picture.measure == measure) return picture.chart.y_label;
    }
  }
  return {};
}

// Returns radio buttons with which the reader selects one of the drawn measures.
std::string measure_buttons(const std::vector<Figure>& figures) {
  std::string html;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    const std::string label = drawn_label(figures, static_cast<int>(i));
    if (label.empty()) continue;
    html += fmt::format(
        "<input type=\"radio\" name=\"measure\" id=\"measure{0}\"{1}/><label for=\"measure{0}\"> "
        "{2}</label><br/>\n",
        i, html.empty() ? " checked=\"checked\"" : "", escaped(label));
  }
  return html;
}

// Returns the CSS classes of a figure. With these classes the figure is shown only if it has a picture of the
// measure that the reader has selected. A figure with a picture that belongs to no measure gets no classes,
// so it is always shown.
std::string classes_of(const Figure& figure) {
  std::string classes = "chart";
  for (const Picture& picture : figure.pictures) {
    if (picture.measure < 0) return "";
    classes += fmt::format(" measure{}", picture.measure);
  }
  return fmt::format(" class=\"{}\"", classes);
}

std::string figure_section(const Figure& figure) {
  std::string html = "<section" + classes_of(figure) + ">\n<h2>" + escaped(figure.title) + "</h2>\n";
  for (const Picture& picture : figure.pictures) {
    const std::string classes =
        picture.measure < 0 ? "" : fmt::format(" class=\"chart measure{}\"", picture.measure);
    html += "<div" + classes + ">\n" + draw(picture.chart);
    if (!picture.remark.empty()) html += "<p>" + escaped(picture.remark) + "</p>\n";
    html += "</div>\n";
  }
  return html + "</section>\n";
}

std::string error_text(const Json& error) {
  return error.is_null() ? "-" : fmt::format("{:.3g}", read_number(error));
}

std::string yes_or_no(const Json& value) { return value.is_null() ? "-" : value.get<bool>() ? "yes" : "no"; }

HeadedCells error_cells(const Json& row) {
  const Json& problem = row.at("problem");
  const Json& errors = row.at("errors");
  const Json bound = row.at("bound").is_null() ? Json::object() : row.at("bound");
  const Json& baseline = row.at("baseline");
  const auto error = [&](const char* member) { return error_text(errors.value(member, Json())); };
  return {{"distribution", cell(row, "distribution")},
          {"seed", cell(row, "seed")},
          {"scheme", cell(row, "scheme")},
          {"engine", cell(row, "engine")},
          {"accumulator", cell(row, "accumulator")},
          {"m", cell(problem, "m")},
          {"n", cell(problem, "n")},
          {"k", cell(problem, "k")},
          {"type", row_type(row)},
          {"Frobenius", error("frobenius_relative")},
          {"componentwise", error("max_componentwise")},
          {"max relative", error("max_relative")},
          {"mean relative", error("mean_relative")},
          {"mean relative, long double", error("mean_relative_long_double")},
          {"Max_error", error("le_gemm_max_error")},
          {"MRED", error("le_gemm_mred")},
          {"correctly rounded",
           fmt::format("{:.1f} %", 100 * errors.at("correctly_rounded_fraction").get<double>())},
          {"native Frobenius",
           baseline.is_null() ? "-" : error_text(baseline.at("errors").at("frobenius_relative"))},
          {"in contract", yes_or_no(errors.at("within_contract_bound"))},
          {"a-priori bound", error_text(bound.value("relative", Json()))},
          {"bound held", yes_or_no(bound.value("held", Json()))}};
}

// Returns the table of all rows except those of rate_row(); "" if there are no others.
std::string error_table(const std::vector<Json>& rows) {
  std::vector<HeadedCells> cells;
  for (const Json& row : rows) {
    if (!is_rate_row(row)) cells.push_back(error_cells(row));
  }
  return cells.empty() ? "" : "<h2>All rows</h2>\n" + html_table(cells);
}

// Returns the explanation of the figures.
std::string legend_of(const std::vector<Json>& rows) {
  std::string html;
  if (!std::all_of(rows.begin(), rows.end(), is_rate_row))
    html +=
        "<p>R is the exact product, S the native one. A point is the largest of its seeds. Colours are "
        "schemes, dashes and markers engines and accumulators. The contract is one of componentwise errors, "
        "and is drawn there.</p>\n";
  if (std::any_of(rows.begin(), rows.end(), is_rate_row))
    html +=
        "<p>Each file has the rates of one run: every result was checked, then all were timed in turns. A "
        "point is the largest of its files. Colours are candidates and baselines, dashes and markers "
        "engines and threads or devices.</p>\n";
  return html;
}

}  // namespace

std::string seconds_text(const Json& seconds) {
  return seconds.is_null() ? "-" : time_text(read_number(seconds));
}

std::string percent_text(const Json& fraction) {
  return fraction.is_null() ? "-" : fmt::format("{:.1f} %", 100 * read_number(fraction));
}

std::string check_text(const Json& check) {
  if (check.at("promise") == "exact") return "correctly rounded";
  return fmt::format("{:.2g} of its {}", read_number(check.at("largest_ratio")), cell(check, "promise"));
}

Json rate_row(const Json& document, const Json& row) {
  const Json& engine = row.at("engine");
  const bool is_device_row = on_device(row);
  const double rate = read_number(row.at("rate"));
  return {{"problem", row.at("problem")},
          {"distribution", row.at("distribution")},
          {"scheme", row.at("name")},
          {"engine", engine.is_null() ? Json("plain loop") : engine},
          {"accumulator", conditions_text(document, row)},
          {"rate", is_device_row ? Json() : Json(1e-9 * rate)},
          {"device_rate", is_device_row ? Json(1e-12 * rate) : Json()},
          {"ratio_to_native", row.at("ratios").value("native", Json())},
          {"of_ceiling", row.value("of_ceiling", Json())},
          {"ceilings", is_device_row ? document.at("ceilings") : Json()},
          {"bench", row}};
}

bool is_rate_row(const Json& row) { return row.contains("rate"); }

std::string html_table(const std::vector<HeadedCells>& rows) {
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const auto& [head, text] : rows.front()) html += "<th>" + escaped(head) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const HeadedCells& row : rows) {
    html += "<tr>";
    for (const auto& [head, text] : row)
      html += (text == "no" ? "<td class=\"no\">" : "<td>") + escaped(text) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string report_page(const PageHead& head, const std::vector<Source>& sources,
                        const std::vector<Json>& rows, const std::vector<Figure>& figures) {
  std::string html =
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
      escaped(head.title) + "</title>\n<style>\n" + page_style() + "</style>\n</head>\n<body>\n<h1>" +
      escaped(head.title) + "</h1>\n<ul>\n";
  for (const Source& source : sources) html += source_item(source);
  html += "</ul>\n" + head.preface;
  html += legend_of(rows);
  html += measure_buttons(figures) + "<main>\n";
  if (figures.empty()) html += "<p>No size and no parameter has two values: there is nothing to draw.</p>\n";
  for (const Figure& figure : figures) html += figure_section(figure);
  return html + error_table(rows) + rate_table(rows) + head.appendix + "</main>\n</body>\n</html>\n";
}

}  // namespace kintsugi::tools
