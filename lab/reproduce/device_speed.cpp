#include "lab/reproduce/device_speed.hpp"

#include <algorithm>

#include "tools/bench/run.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::int64_t largest_repeated_size = 8192;  // larger products are timed once

std::vector<std::int64_t> quick_sizes(const std::vector<std::int64_t>& sizes) {
  return sizes.size() > 1 ? std::vector<std::int64_t>{256, 512} : std::vector<std::int64_t>{256};
}

Json row_of(const Json& timed, const std::string& prepared) {
  const Json& ratios = timed.at("ratios");
  return {{"n", timed.at("problem").at("n")},
          {"scheme", timed.at("name")},
          {"distribution", timed.at("distribution")},
          {"prepared", prepared},
          {"seconds", timed.at("time").at("median")},
          {"rate", timed.at("rate")},
          {"ratio", ratios.contains("native") ? ratios.at("native") : Json()},
          {"frobenius_relative", timed.at("check").at("frobenius_relative")},
          {"clock_mhz", timed.at("clock_mhz")}};
}

// Adds the rows of one size, and the ceilings if they are measured.
void add_size(Json& result, const SquareProducts& products, std::int64_t n, bool measures_ceilings) {
  BenchRequest request;
  request.candidates = products.schemes;
  request.baselines = products.with_native ? std::vector<std::string>{"native"} : std::vector<std::string>{};
  request.shapes = {std::to_string(n)};
  request.prepare = products.prepared;
  request.distribution = products.distribution;
  request.memory = "device";
  request.repeat = n > largest_repeated_size ? 1 : 3;
  request.no_ceilings = !measures_ceilings;
  Bench bench = make_bench(request);
  bench.hashes_results = false;
  const Json timed = run_bench(bench, "");
  result["device"] = timed.at("device");
  if (measures_ceilings) result["ceilings"] = timed.at("ceilings");
  for (const Json& row : timed.at("rows")) result["rows"].push_back(row_of(row, products.prepared));
}

bool has_key(const Json& row, const SpeedKey& key) {
  return row.value("scheme", "") == key.scheme && row.value("n", std::int64_t{0}) == key.n &&
         row.value("prepared", "") == key.prepared && row.value("distribution", "") == key.distribution;
}

}  // namespace

Json device_speed_document(const std::vector<SquareProducts>& runs, bool quick) {
  Json result = document("device-speed");
  result["samples"] = 0;
  result["device"] = nullptr;
  result["ceilings"] = nullptr;
  result["rows"] = Json::array();
  for (const SquareProducts& products : runs) {
    bool measures_ceilings = products.measures_ceilings;
    for (const std::int64_t n : quick ? quick_sizes(products.sizes) : products.sizes) {
      add_size(result, products, n, measures_ceilings);
      measures_ceilings = false;
    }
  }
  result["samples"] = result.at("rows").size();
  return result;
}

double speed_value(const Evidence& evidence, const SpeedKey& key, const char* member) {
  for (const Json& row : evidence.rows()) {
    if (has_key(row, key)) return read_number(row.at(member));
  }
  throw NoSuchRow(fmt::format("no row has {} at n = {}, {}, prepared {}", key.scheme, key.n, key.distribution,
                              key.prepared));
}

double seconds_of(const Evidence& evidence, const SpeedKey& key) {
  return speed_value(evidence, key, "seconds");
}

std::vector<std::int64_t> timed_sizes(const Evidence& evidence, const std::string& scheme) {
  std::set<std::int64_t> sizes;
  for (const Json& row : evidence.rows()) {
    const std::int64_t n = row.value("n", std::int64_t{0});
    if (has_key(row, {.scheme = scheme, .n = n})) sizes.insert(n);
  }
  if (sizes.empty()) throw NoSuchRow("no row has " + scheme);
  return {sizes.begin(), sizes.end()};
}

std::vector<double> by_size(const Evidence& evidence, const std::string& scheme, const char* member) {
  std::vector<double> values;
  for (const std::int64_t n : timed_sizes(evidence, scheme))
    values.push_back(speed_value(evidence, {.scheme = scheme, .n = n}, member));
  return values;
}

double seconds_without_splits(const Evidence& evidence, const std::string& scheme, std::int64_t n) {
  return seconds_of(evidence, {.scheme = scheme, .n = n, .prepared = "a"}) +
         seconds_of(evidence, {.scheme = scheme, .n = n, .prepared = "b"}) -
         seconds_of(evidence, {.scheme = scheme, .n = n});
}

std::vector<Figure> draw_by_size(const Json& document, const std::string& title, const char* member,
                                 const std::string& label) {
  Chart chart{.title = title, .x_label = "n, m = n = k", .y_label = label, .log_y = false};
  for (const Json& row : document.at("rows")) {
    if (row.at("prepared") != "none" || row.at(member).is_null()) continue;
    const std::string scheme = cell(row, "scheme") + ", " + cell(row, "distribution");
    auto series = std::find_if(chart.series.begin(), chart.series.end(),
                               [&](const Series& known) { return known.label == scheme; });
    if (series == chart.series.end()) {
      const int index = static_cast<int>(chart.series.size());
      chart.series.push_back({.label = scheme, .colour = index, .style = index, .points = {}});
      series = chart.series.end() - 1;
    }
    series->points.emplace_back(row.at("n").get<double>(), read_number(row.at(member)));
  }
  if (chart.series.empty()) return {};
  return {{title, {{.chart = chart, .name = member}}}};
}

}  // namespace kintsugi::tools
