#include "page.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "settings.hpp"

namespace kintsugi::drop_in {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* style =
    "body{font:15px/1.45 sans-serif;max-width:1280px;margin:1rem auto;padding:0 .8rem}"
    "h1{font-size:1.4rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:12.5px}td,th{padding:.15rem .5rem;border-bottom:1px solid;"
    "text-align:right;vertical-align:top}"
    "td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}";

// Returns text with the characters of markup replaced. Control characters, which XML does not allow, are
// dropped.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      result += c;
    }
  }
  return result;
}

using Cells = std::vector<std::string>;

std::string table(const Cells& heads, const std::vector<Cells>& rows) {
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const std::string& head : heads) html += "<th>" + escaped(head) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const Cells& row : rows) {
    html += "<tr>";
    for (const std::string& text : row) html += "<td>" + escaped(text) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::int64_t count(const Json& json, const char* member) { return json.value(member, std::int64_t{0}); }

// Returns a number of the document; -1 if it is null or not there.
double number(const Json& json, const char* member) {
  return json.contains(member) && json.at(member).is_number() ? json.at(member).get<double>() : -1;
}

double seconds_of(const Json& problem) {
  return number(problem, this_drop_in.is_cublas ? "device_seconds" : "seconds");
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return value < 0 ? "-" : text;
}

// Returns the largest of a problem's sampled errors. JSON has no infinity, so that one is a text.
std::string error_text(const Json& error) {
  if (!error.is_object()) return "-";
  const Json& largest = error.at("largest");
  return largest.is_string() ? largest.get<std::string>() : number_text(largest.get<double>());
}

std::string programs_text(const Json& problem) {
  std::string text;
  for (const auto& [name, calls] : problem.at("emulated_calls").items())
    text += (text.empty() ? "" : "; ") + name;
  if (count(problem, "native_calls") > 0)
    text += (text.empty() ? "" : "; ") + std::string(this_drop_in.library);
  return text;
}

std::string shape_text(const Json& problem) {
  std::string text;
  for (const char* letter : {"side", "uplo", "op_a", "op_b", "diag"})
    if (problem.contains(letter)) text += problem.at(letter).get<std::string>() + " ";
  for (const char* size : {"m", "n", "k"})
    text += (size[0] == 'm' ? "" : " x ") + std::to_string(count(problem, size));
  const std::int64_t items = count(problem, "batch_count");
  return items > 1 ? text + ", batch of " + std::to_string(items) : text;
}

// Counts and seconds of all problems.
struct Totals {
  std::int64_t calls = 0, native_calls = 0, failed_calls = 0;
  double seconds = 0, native_seconds = 0;  // native_seconds: of cuBLAS, where it and `seconds` are known
  double compared_seconds = 0;             // the part of `seconds` that native_seconds stands for

  void add(const Json& problem) {
    calls += count(problem, "calls");
    native_calls += count(problem, "native_calls");
    failed_calls += count(problem, "failed_calls");
    const double measured = seconds_of(problem), estimate = number(problem, "estimated_native_seconds");
    seconds += std::max(measured, 0.0);
    if (measured < 0 || estimate < 0) return;
    native_seconds += estimate;
    compared_seconds += measured;
  }
};

std::string totals_text(const Totals& all) {
  const std::string library = this_drop_in.library;
  std::string text = "<p>" + std::to_string(all.calls) + " calls, of which " +
                     std::to_string(all.native_calls) + " are " + library + "'s and " +
                     std::to_string(all.failed_calls) + " failed to be emulated; " +
                     number_text(all.seconds) + " s.";
  if (all.native_seconds > 0)
    text += " Problems that took " + number_text(all.compared_seconds) + " s would take " + library + " " +
            number_text(all.native_seconds) +
            " s. Where Kintsugi multiplied, this is a lower estimate by the GPU's profile, unless "
            "KINTSUGI_VERIFY_SPEED=1 measured it.";
  return text + "</p>\n";
}

std::string problems_table(const Json& problems) {
  std::vector<Json> sorted(problems.begin(), problems.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Json& one, const Json& other) { return seconds_of(one) > seconds_of(other); });
  Cells heads{"function", "problem", "calls", "forwarded", "failed", "seconds"};
  if (this_drop_in.is_cublas) heads.emplace_back("estimated seconds of cuBLAS");
  const bool has_errors = std::any_of(sorted.begin(), sorted.end(),
                                      [](const Json& problem) { return problem.contains("error"); });
  if (has_errors) heads.emplace_back("largest sampled error");
  heads.insert(heads.end(), {"recomputed elements", "what multiplied"});
  std::vector<Cells> rows;
  for (const Json& problem : sorted) {
    const Json execution = problem.value("last_sampled_execution", Json());
    Cells row{problem.at("symbol").get<std::string>(),        shape_text(problem),
              std::to_string(count(problem, "calls")),        std::to_string(count(problem, "native_calls")),
              std::to_string(count(problem, "failed_calls")), number_text(seconds_of(problem))};
    if (this_drop_in.is_cublas) row.push_back(number_text(number(problem, "estimated_native_seconds")));
    if (has_errors) row.push_back(error_text(problem.value("error", Json())));
    row.push_back(number_text(number(execution.is_object() ? execution : problem, "recomputed_elements")));
    row.push_back(programs_text(problem));
    rows.push_back(std::move(row));
  }
  return "<h2>What ran where</h2>\n" + table(heads, rows);
}

// Returns the table of reasons for which the hidden library multiplied. BLAS's report knows only the last
// reason of a problem.
std::string reasons_table(const Json& problems) {
  std::map<std::string, std::int64_t> reasons;
  for (const Json& problem : problems) {
    if (count(problem, "native_calls") == 0) continue;
    if (!problem.contains("reasons")) reasons[problem.value("why", "")] += count(problem, "native_calls");
    const Json calls_by_reason = problem.value("reasons", Json::object());
    for (const auto& [reason, calls] : calls_by_reason.items()) reasons[reason] += calls.get<std::int64_t>();
  }
  std::vector<Cells> rows;
  for (const auto& [reason, calls] : reasons) rows.push_back({std::to_string(calls), reason});
  std::stable_sort(rows.begin(), rows.end(), [](const Cells& one, const Cells& other) {
    return std::stoll(one[0]) > std::stoll(other[0]);
  });
  if (rows.empty()) return "";
  return "<h2>Reasons for problems of which " + std::string(this_drop_in.library) + " answered calls</h2>\n" +
         table({"calls", "reason"}, rows);
}

// Returns the table of call sites with their sampled errors; "" without KINTSUGI_SITES.
std::string sites_table(const Json& document) {
  std::vector<Cells> rows;
  for (const Json& site : document.value("sites", Json::array()))
    rows.push_back({site.at("site").get<std::string>(), site.at("error").dump()});
  return rows.empty() ? "" : "<h2>Sampled errors of call sites</h2>\n" + table({"call site", "error"}, rows);
}

}  // namespace

std::string report_page(const std::string& text) {
  const Json document = Json::parse(text);
  const Json& problems = document.at("problems");
  Totals all;
  for (const Json& problem : problems) all.add(problem);
  const std::string title = escaped(std::string("Products of ") + program_invocation_short_name);
  const auto member = [&](const char* name) { return escaped(document.value(name, "")); };
  const std::string accuracy = member("accuracy"), file = member(this_drop_in.member);
  std::string html =
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n";
  html +=
      "<title>" + title + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n";
  html += "<p>Kintsugi " + member("version") + ", process " + std::to_string(count(document, "process")) +
          ", policy " + member("policy") + (accuracy.empty() ? "" : ", accuracy " + accuracy) + "; " +
          this_drop_in.library + ": " + (file.empty() ? "none" : file) + "</p>\n";
  return html + totals_text(all) + problems_table(problems) + reasons_table(problems) +
         sites_table(document) + "</body>\n</html>\n";
}

}  // namespace kintsugi::drop_in
