#include "tune/flow.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tune/tuner.hpp"

namespace kintsugi::tools {

namespace {

// Returns the name of the call itself, without the names of callers.
std::string own_frame(const std::string& site) { return site.substr(0, site.find(" < ")); }

// The compiler does not know the operand of results that only memory connects.
constexpr const char* unknown_operand = "?";

}  // namespace

std::vector<FlowInput> inputs_of(const Json& site, const Json& sites) {
  std::vector<FlowInput> inputs;
  for (const Json& input : site.at("inputs"))
    inputs.push_back({.site = input.at("site"), .calls = input.at("calls")});
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const FlowInput& one, const FlowInput& other) { return one.calls > other.calls; });
  const Json may_read = site.value("may_read", Json());
  if (may_read.is_null()) return inputs;
  for (const Json& other : sites) {
    const std::string name = other.at("site");
    std::string operands;
    for (const Json& input : may_read)
      if (input.at("site") == own_frame(name)) operands += input.at("operand").get<std::string>();
    if (operands.empty()) continue;
    std::sort(operands.begin(), operands.end());
    const auto known = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const FlowInput& input) { return input.site == name; });
    if (known == inputs.end())
      inputs.push_back({name, 0, operands});
    else
      known->operands = operands;
  }
  return inputs;
}

std::vector<std::size_t> roles_of(const std::vector<TunedSite>& sites) {
  if (std::none_of(sites.begin(), sites.end(), [](const TunedSite& site) { return site.has_record; }))
    return {};
  std::map<std::string, std::set<char>> reads, is_read_as;
  for (const TunedSite& site : sites)
    for (const FlowInput& input : site.inputs)
      for (const char operand : input.operands.empty() ? std::string(unknown_operand) : input.operands) {
        reads[site.name].insert(operand);
        is_read_as[input.site].insert(operand);
      }
  using Role = std::tuple<std::string, std::set<char>, std::set<char>, std::string>;
  std::map<Role, std::size_t> numbers;
  std::vector<std::size_t> roles;
  for (const TunedSite& site : sites) {
    const Role role{site.type, reads[site.name], is_read_as[site.name], site.has_record ? "" : site.name};
    roles.push_back(numbers.try_emplace(role, numbers.size()).first->second);
  }
  return roles;
}

}  // namespace kintsugi::tools
