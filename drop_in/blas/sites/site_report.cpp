#include "site_report.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "blas/settings.hpp"
#include "common/report_file.hpp"
#include "common/sites/call_stack.hpp"
#include "site.hpp"

namespace kintsugi::blas {

namespace {

using Json = nlohmann::ordered_json;

std::vector<const Site*> in_order(const Record& record) {
  std::vector<const Site*> sites;
  for (const auto& [site, calls] : record.sites) sites.push_back(site);
  std::sort(sites.begin(), sites.end(), [](const Site* one, const Site* other) {
    return std::tie(one->module, one->offset, one->name) <
           std::tie(other->module, other->offset, other->name);
  });
  return sites;
}

Json rule_json(const Site& site) {
  if (!site.has_rule) return nullptr;
  Json rule = Json::object();
  if (!site.rule.scheme.empty()) rule["scheme"] = site.rule.scheme;
  if (!site.rule.accuracy.empty()) rule["accuracy"] = site.rule.accuracy;
  if (!site.rule.policy.empty()) rule["policy"] = site.rule.policy;
  return rule;
}

Json source_json(const Site& site) {
  if (!site.source) return nullptr;
  return {{"file", site.source->file}, {"line", site.source->line}, {"callee", site.source->callee}};
}

std::string output_name(std::size_t ordinal) { return std::to_string(ordinal) + ".npy"; }

Json site_json(const Site& site, std::size_t ordinal, const SiteRecord& record) {
  Json json = {{"site", site.name},
               {"ordinal", ordinal},
               {"module", site.module},
               {"function", site.function},
               {"offset", site.offset},
               {"source", source_json(site)},
               {"callers", drop_in::callers_json(site.callers)},
               {"rule", rule_json(site)}};
  json.update(counts_json(record.all));
  json["why"] = record.all.why;
  json["multiplications"] = record.multiplications;
  json["inputs"] = drop_in::inputs_json(record.inputs);
  json["error"] = record.errors.json();
  json["output"] = record.output.is_empty() ? Json() : Json(output_name(ordinal));
  json["problems"] = Json::array();
  for (const auto& [key, problem] : record.problems) json["problems"].push_back(problem_json(key, problem));
  return json;
}

}  // namespace

Json sites_json(const Record& record) {
  Json json = Json::array();
  for (const Site* site : in_order(record))
    json.push_back(site_json(*site, json.size() + 1, record.sites.at(site)));
  return json;
}

void print_sites(const Record& record) {
  std::fprintf(stderr, "%10s %12s  %s\n", "calls", "seconds", "call site: what it runs");
  std::vector<drop_in::TableRow> rows;
  for (const Site* site : in_order(record)) {
    const ProblemRecord& all = record.sites.at(site).all;
    char numbers[48];
    std::snprintf(numbers, sizeof numbers, "%10lld %12.6f  ", static_cast<long long>(all.calls), all.seconds);
    const std::string rule = site->has_rule ? rule_json(*site).dump() : "not in the sites file";
    rows.push_back({all.seconds, numbers + site->name + ": " + rule});
  }
  drop_in::print_rows(std::move(rows), "call sites");
}

void write_outputs(const Record& record) {
  if (!settings().sites || settings().sites->outputs.empty()) return;
  std::size_t ordinal = 0;
  for (const Site* site : in_order(record)) {
    const SiteOutput& output = record.sites.at(site).output;
    const std::string path = settings().sites->outputs + "/" + output_name(++ordinal);
    if (output.is_empty() || drop_in::write_file(path, output.npy())) continue;
    std::fprintf(stderr, "kintsugi: %s cannot be written: %s\n", path.c_str(), std::strerror(errno));
  }
}

}  // namespace kintsugi::blas
