#include "report/page.hpp"

#include <algorithm>

#include "report/dimensions.hpp"
#include "report/rates.hpp"

namespace kintsugi::tools {

namespace {

std::string page_style() {
  std::string style =
      chart_style() +
      "body{font:15px/1.45 sans-serif;margin:1.5rem}"
      "h1{font-size:1.4rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}svg{max-width:100%;height:auto}"
      ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:12.5px}"
      "td,th{padding:.15rem .5rem;border-bottom:1px solid;text-align:right;"
      "white-space:nowrap}td:nth-child(-n+5),th:nth-child(-n+5){text-align:left}.prose{white-space:normal;"
      "min-width:8rem;vertical-align:top}"
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

bool is_drawn(const std::vector<Figure>& figures, int measure) {
  for (const Figure& figure : figures) {
    for (const Picture& picture : figure.pictures) {
      if (picture.measure == measure) return true;
    }
  }
  return false;
}

// Returns radio buttons with which the reader selects one of the drawn measures.
std::string measure_buttons(const std::vector<Figure>& figures) {
  std::string html;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    if (!is_drawn(figures, static_cast<int>(i))) continue;
    html += fmt::format(
        "<input type=\"radio\" name=\"measure\" id=\"measure{0}\"{1}/><label for=\"measure{0}\"> "
        "{2}</label><br/>\n",
        i, html.empty() ? " checked=\"checked\"" : "", escaped(measures[i].label));
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

std::string error_text(const Json& error) { return fmt::format("{:.3g}", read_number(error)); }

// Returns a table's cell: yes, a conspicuous no, or "-" for null.
std::string yes_or_no_cell(const Json& value) {
  if (value.is_null()) return "<td>-</td>";
  return value.get<bool>() ? "<td>yes</td>" : "<td class=\"no\">no</td>";
}

std::string error_table_row(const Json& row) {
  const Json& errors = row.at("errors");
  const Json& bound = row.at("bound");
  const Json& problem = row.at("problem");
  std::string html = "<tr>";
  const auto add = [&html](const std::string& text) { html += "<td>" + escaped(text) + "</td>"; };
  for (const char* name : {"distribution", "seed", "scheme", "engine", "accumulator"}) add(cell(row, name));
  for (const char* name : {"m", "n", "k"}) add(cell(problem, name));
  add(row_type(row));
  for (const Measure& measure : measures) {
    if (measure.kind == MeasureKind::rate) continue;
    const Json error = errors.value(measure.member, Json());
    add(error.is_null() ? "-" : error_text(error));
  }
  add(fmt::format("{:.1f} %", 100 * errors.at("correctly_rounded_fraction").get<double>()));
  add(row.at("baseline").is_null() ? "-"
                                   : error_text(row.at("baseline").at("errors").at("frobenius_relative")));
  html += yes_or_no_cell(errors.at("within_contract_bound"));
  add(bound.is_null() ? "-" : error_text(bound.at("relative")));
  html += yes_or_no_cell(bound.is_null() ? Json() : bound.at("held"));
  return html + "</tr>\n";
}

// Returns the table of all rows except those of rate_row(); "" if there are no others.
std::string error_table(const std::vector<Json>& rows) {
  if (std::all_of(rows.begin(), rows.end(), is_rate_row)) return "";
  std::string html = "<h2>All rows</h2>\n<div class=\"wide\"><table>\n<thead><tr>";
  for (const char* head : {"distribution",
                           "seed",
                           "scheme",
                           "engine",
                           "accumulator",
                           "m",
                           "n",
                           "k",
                           "type",
                           "Frobenius",
                           "componentwise",
                           "max relative",
                           "mean relative",
                           "mean relative, long double",
                           "Max_error",
                           "MRED",
                           "correctly rounded",
                           "native Frobenius",
                           "in contract",
                           "a-priori bound",
                           "bound held"}) {
    html += fmt::format("<th>{}</th>", head);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& row : rows) {
    if (!is_rate_row(row)) html += error_table_row(row);
  }
  return html + "</tbody>\n</table></div>\n";
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
  return html + error_table(rows) + rate_table(rows) + "</main>\n</body>\n</html>\n";
}

}  // namespace kintsugi::tools
