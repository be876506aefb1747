#include "flow.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

namespace kintsugi::drop_in {

void Flow::add(const Place& site, const std::vector<Region>& inputs, const Region& output,
               SiteInputs& found) {
  std::set<const Place*> feeding;
  for (const Region& input : inputs)
    for (const Output& earlier : outputs_)
      if (overlap(earlier.region, input)) feeding.insert(earlier.site);
  for (const Place* place : feeding) ++found[place];

  if (output.is_empty()) return;
  std::erase_if(outputs_, [&](const Output& earlier) { return covers(output, earlier.region); });
  if (outputs_.size() >= most_outputs) outputs_.erase(outputs_.begin());
  outputs_.push_back({output, &site});
}

nlohmann::ordered_json inputs_json(const SiteInputs& inputs) {
  std::vector<std::pair<std::string, std::int64_t>> named;
  for (const auto& [site, calls] : inputs) named.emplace_back(site->name, calls);
  std::sort(named.begin(), named.end());
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [name, calls] : named) json.push_back({{"site", name}, {"calls", calls}});
  return json;
}

}  // namespace kintsugi::drop_in
