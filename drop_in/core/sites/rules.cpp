#include "rules.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/settings.hpp"
#include "place.hpp"

namespace kintsugi::drop_in {

namespace {

using Json = nlohmann::json;

struct BadFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& message) {
  if (!holds) throw BadFile(message);
}

std::string text_of(const Json& value, const std::string& member) {
  require(value.is_string(), member + " = " + value.dump() + " is no string");
  return value.get<std::string>();
}

SiteRule rule_of(const Json& json, const std::string& site) {
  require(json.is_object(), "sites: \"" + site + "\": " + json.dump() + " is no object");
  SiteRule rule;
  for (const auto& [name, value] : json.items()) {
    const std::string member = "sites: \"" + site + "\": " + name;
    std::string* option = name == "scheme"     ? &rule.scheme
                          : name == "accuracy" ? &rule.accuracy
                          : name == "policy"   ? &rule.policy
                                               : nullptr;
    require(option != nullptr, member + " is no member; accepted: scheme, accuracy, policy");
    *option = text_of(value, member);
    require(!option->empty(), member + " is empty");
  }
  const std::string mistake = sites::mistake_in(rule);
  require(mistake.empty(), "sites: \"" + site + "\": " + mistake);
  return rule;
}

// Returns the value of `member`, a whole number from `least` to `most`; `otherwise` if there is no such
// member.
std::int64_t number_of(const Json& json, const char* member, std::int64_t least, std::int64_t most,
                       std::int64_t otherwise) {
  if (!json.contains(member)) return otherwise;
  const Json& value = json.at(member);
  const bool fits = value.is_number_integer() && value >= least && value <= most;
  require(fits, std::string(member) + " = " + value.dump() + " is not in " + std::to_string(least) + " ... " +
                    std::to_string(most));
  return value.get<std::int64_t>();
}

SitesFile sites_of(const Json& json) {
  require(json.is_object() && json.contains("format") && json.at("format") == "kintsugi.sites",
          "format is not kintsugi.sites");
  require(json.contains("format_version") && json.at("format_version") == 1, "format_version is not 1");
  require(json.contains("sites") && json.at("sites").is_object(), "sites is no object");
  SitesFile file;
  if (json.contains("outputs")) file.outputs = text_of(json.at("outputs"), "outputs");
  constexpr std::int64_t most_samples = 1 << 20;
  file.error_samples = number_of(json, "error_samples", 0, most_samples, 0);
  file.frames = static_cast<std::size_t>(number_of(json, "frames", 1, CallStack::most_frames, 1));
  for (const auto& [site, rule] : json.at("sites").items()) {
    file.rules[site] = rule_of(rule, site);
    // A rule with more frames than sites have would never hold.
    file.frames = std::clamp(frames_in(site), file.frames, CallStack::most_frames);
  }
  return file;
}

std::optional<SitesFile> read_sites_file(const std::string& path, std::string& message) try {
  std::ifstream file(path);
  require(file.good(), std::string("cannot be read: ") + std::strerror(errno));
  return sites_of(Json::parse(file));
} catch (const Json::exception& error) {
  message = "KINTSUGI_SITES = \"" + path + "\" is no JSON: " + error.what();
  return std::nullopt;
} catch (const BadFile& error) {
  message = "KINTSUGI_SITES = \"" + path + "\": " + error.what();
  return std::nullopt;
}

}  // namespace

const SiteRule* SitesFile::rule_for(std::string site) const {
  do {
    if (const auto rule = rules.find(site); rule != rules.end()) return &rule->second;
  } while (drop_outermost_frame(site));
  return nullptr;
}

bool read_sites(const Settings& settings, std::optional<SitesFile>& sites, std::string& message) {
  const std::string path = variable("KINTSUGI_SITES");
  if (path.empty()) return true;
  if (settings.policy == Policy::force) {
    message =
        "KINTSUGI_POLICY = \"force\" cannot stand beside KINTSUGI_SITES, whose unknown sites are native";
    return false;
  }
  if (!settings.scheme.empty()) {
    message = "KINTSUGI_SCHEME, or the settings file's scheme, = \"" + settings.scheme +
              "\" cannot stand beside KINTSUGI_SITES, which names schemes";
    return false;
  }
  sites = read_sites_file(path, message);
  return sites.has_value();
}

}  // namespace kintsugi::drop_in
