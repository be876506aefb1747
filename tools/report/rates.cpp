#include "report/rates.hpp"

#include <algorithm>

#include "report/charts/svg.hpp"

namespace kintsugi::tools {

namespace {

std::string computed_text(const Json& row) {
  return cell(row.at("computed"), "m") + " x " + cell(row.at("computed"), "n");
}

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

std::string rate_table_row(const Json& row) {
  std::string html = "<tr>";
  const auto add = [&html](const std::string& text) { html += "<td>" + escaped(text) + "</td>"; };
  const Json& problem = row.at("problem");
  for (const char* name : {"distribution", "name", "scheme", "engine", "engine_details"})
    add(cell(row, name));
  for (const char* name : {"m", "n", "k", "type"}) add(cell(problem, name));
  add(fmt::format("{}", batch_of(row)));
  add(cell(row, "prepared"));
  add(cell(row, "threads"));
  add(computed_text(row));
  add(seconds_text(row.at("time").at("minimum")));
  add(seconds_text(row.at("time").at("median")));
  add(fmt::format("{:.4g}", 1e-9 * read_number(row.at("rate"))));
  add(ratios_text(row.at("ratios")));
  add(percent_text(row.value("of_ceiling", Json())));
  add(number_text(row.value("power_watts", Json())));
  add(number_text(row.value("clock_mhz", Json())));
  add(check_text(row.at("check")));
  add(row.at("workspace_bytes").is_null() ? "-" : bytes_text(read_number(row.at("workspace_bytes"))));
  return html + "</tr>\n";
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

std::string rate_table(const std::vector<Json>& rows) {
  if (std::none_of(rows.begin(), rows.end(), is_rate_row)) return "";
  std::string html = "<h2>All rates</h2>\n<div class=\"wide\"><table>\n<thead><tr>";
  for (const char* head : {"distribution",
                           "candidate",
                           "ran",
                           "engine",
                           "its kernels",
                           "m",
                           "n",
                           "k",
                           "type",
                           "batch",
                           "prepared",
                           "threads",
                           "computed",
                           "quickest",
                           "median",
                           "GFLOP/s",
                           "of the baselines",
                           "of its units",
                           "W",
                           "MHz",
                           "largest error",
                           "workspace"})
    html += fmt::format("<th>{}</th>", head);
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& row : rows) {
    if (is_rate_row(row)) html += rate_table_row(row.at("bench"));
  }
  return html + "</tbody>\n</table></div>\n";
}

}  // namespace kintsugi::tools
