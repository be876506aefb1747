#include "report/page.hpp"

namespace kintsugi::tools {

namespace {

std::string page_style() {
  std::string style =
      chart_style() +
      "body{font:15px/1.45 sans-serif;margin:1.5rem}"
      "h1{font-size:1.4rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}svg{max-width:100%;height:auto}"
      ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:12.5px}"
      "td,th{padding:.15rem .5rem;border-bottom:1px solid;text-align:right;"
      "white-space:nowrap}td:nth-child(-n+5),th:nth-child(-n+5){text-align:left}"
      "code{overflow-wrap:anywhere}.no{font-weight:bold}.chart{display:none}\n";
  for (std::size_t i = 0; i < measures.size(); ++i)
    style += fmt::format("#measure{0}:checked~main .measure{0}{{display:block}}\n", i);
  return style;
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list) {
    if (!text.empty()) text += ',';
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

// The command that makes a file's rows.
std::string command_of(const AccuracyFile& file) {
  std::string command = "kintsugi accuracy";
  for (const auto& [name, value] : file.document.at("settings").items()) {
    const std::string flag = name == "max_entries" ? "max-entries" : name;
    command += fmt::format(" --{} {}", flag, value.is_array() ? joined(value) : value.dump());
  }
  return command + " -o " + file.name;
}

std::string file_section(const AccuracyFile& file) {
  const Json& machine = file.document.at("machine");
  return fmt::format("<li>{}: {} rows; Kintsugi {}, commit {}; {}, {} threads, {}<br/><code>{}</code></li>\n",
                     escaped(file.name), file.document.at("rows").size(),
                     escaped(cell(file.document, "version")), escaped(cell(file.document, "commit")),
                     escaped(cell(machine, "processor")), cell(machine, "threads"),
                     escaped(cell(machine, "system")), escaped(command_of(file)));
}

std::string choice_of_measure() {
  std::string html;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    html += fmt::format(
        "<input type=\"radio\" name=\"measure\" id=\"measure{0}\"{1}/><label for=\"measure{0}\"> "
        "{2}</label>\n",
        i, i == 0 ? " checked=\"checked\"" : "", escaped(measures[i].label));
  }
  return html;
}

std::string figure_section(const Figure& figure) {
  std::string html = "<h2>" + escaped(figure.title) + "</h2>\n";
  for (std::size_t i = 0; i < figure.charts.size(); ++i) {
    html += fmt::format("<div class=\"chart measure{}\">\n{}", i, draw(figure.charts[i]));
    if (!figure.remarks[i].empty()) html += "<p>" + escaped(figure.remarks[i]) + "</p>\n";
    html += "</div>\n";
  }
  return html;
}

std::string error_text(const Json& error) { return fmt::format("{:.3g}", read_number(error)); }

std::string verdict(const Json& value) {
  if (value.is_null()) return "<td>-</td>";
  return value.get<bool>() ? "<td>yes</td>" : "<td class=\"no\">no</td>";
}

std::string table_row(const Json& row) {
  const Json& errors = row.at("errors");
  const Json& bound = row.at("bound");
  const Json& problem = row.at("problem");
  std::string html = "<tr>";
  const auto add = [&html](const std::string& text) { html += "<td>" + escaped(text) + "</td>"; };
  for (const char* name : {"distribution", "seed", "scheme", "engine", "accumulator"}) add(cell(row, name));
  for (const char* name : {"m", "n", "k"}) add(cell(problem, name));
  for (const Measure& measure : measures) add(error_text(errors.at(measure.member)));
  add(fmt::format("{:.1f} %", 100 * errors.at("correctly_rounded_fraction").get<double>()));
  add(row.at("baseline").is_null() ? "-"
                                   : error_text(row.at("baseline").at("errors").at("frobenius_relative")));
  html += verdict(errors.at("within_contract_bound"));
  add(bound.is_null() ? "-" : error_text(bound.at("relative")));
  html += verdict(bound.is_null() ? Json() : bound.at("held"));
  return html + "</tr>\n";
}

std::string table_of(const std::vector<Json>& rows) {
  std::string html = "<h2>All rows</h2>\n<div class=\"wide\"><table>\n<thead><tr>";
  for (const char* head : {"distribution", "seed", "scheme", "engine", "accumulator", "m", "n", "k",
                           "Frobenius", "componentwise", "max relative", "MRED", "correctly rounded",
                           "native Frobenius", "in fp32 contract", "a-priori bound", "bound held"}) {
    html += fmt::format("<th>{}</th>", head);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& row : rows) html += table_row(row);
  return html + "</tbody>\n</table></div>\n";
}

}  // namespace

std::string report_page(const std::vector<AccuracyFile>& files, const std::vector<Json>& rows,
                        const std::vector<Figure>& figures) {
  std::string html =
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>Kintsugi: "
      "accuracy</title>\n<style>\n" +
      page_style() + "</style>\n</head>\n<body>\n<h1>Kintsugi: errors against the exact product</h1>\n<ul>\n";
  for (const AccuracyFile& file : files) html += file_section(file);
  html +=
      "</ul>\n<p>R is the exact product. A point is the largest of its seeds. Colours are schemes, dashes "
      "and "
      "markers engines and accumulators. The contract is one of componentwise errors, and is drawn "
      "there.</p>\n" +
      choice_of_measure() + "<main>\n";
  if (figures.empty()) html += "<p>No size and no parameter has two values: there is nothing to draw.</p>\n";
  for (const Figure& figure : figures) html += figure_section(figure);
  return html + table_of(rows) + "</main>\n</body>\n</html>\n";
}

}  // namespace kintsugi::tools
