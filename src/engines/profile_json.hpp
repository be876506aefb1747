// The JSON of profiles (docs/schema/profile.schema.json), and the files in which calibration keeps them.
#pragma once

#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "base/version.hpp"
#include "engines/profile.hpp"

namespace kintsugi::core::profile_json {

using Json = nlohmann::ordered_json;

inline constexpr const char* format_name = "kintsugi.profile";
inline constexpr int format_version = 2;  // 1 named costs of tiles by their numbers

// Returns a document of the format, which begins with the properties of the device.
inline Json new_document(Json device) {
  return {{"format", format_name}, {"format_version", format_version}, {"device", std::move(device)}};
}

// Appends costs, fields with `name` and `value`, and the fits, which end a document.
template <class Fields>
std::string finished(Json document, const Fields& costs, const std::vector<ProfileFit>& fits) {
  Json& values = document["costs"] = Json::object();
  for (const auto& field : costs) values[field.name] = *field.value;
  Json& list = document["fits"] = Json::array();
  for (const ProfileFit& fit : fits) {
    list.push_back({{"kind", fit.kind},
                    {"measurements", fit.measurements},
                    {"median_deviation", fit.median_deviation},
                    {"max_deviation", fit.max_deviation},
                    {"worst", fit.worst}});
  }
  return document.dump(1) + "\n";
}

// Returns what read(document) makes of the text. Fails with bad_setting if the text is no profile; the
// message begins with `where`, the text's origin.
template <class Read>
auto read_document(std::string_view text, std::string_view where, const Read& read) {
  try {
    const Json document = Json::parse(text);
    if (document.at("format") != format_name || document.at("format_version") != format_version)
      fail(Status::bad_setting, "it is no {} of format version {}", format_name, format_version);
    return read(document);
  } catch (const std::exception& error) {
    fail(Status::bad_setting, "{} is no profile of this version: {}", where, error.what());
  }
}

template <class Fields>
void read_costs(const Json& document, const Fields& fields) {
  for (const auto& field : fields) {
    *field.value = document.at("costs").at(field.name);
    if (!(*field.value >= 0) || !std::isfinite(*field.value))
      fail(Status::bad_setting, "{} is {}, and should be a finite number from 0", field.name, *field.value);
  }
}

inline std::vector<ProfileFit> read_fits(const Json& document) {
  std::vector<ProfileFit> fits;
  for (const Json& fit : document.at("fits"))
    fits.push_back({fit.at("kind"), fit.at("measurements"), fit.at("median_deviation"),
                    fit.at("max_deviation"), fit.at("worst")});
  return fits;
}

// Returns the file that calibration writes for a device of this name,
// $XDG_CONFIG_HOME/kintsugi/profiles/NAME.json. Empty if there is no folder for settings.
inline std::string file_of(std::string_view device) {
  const std::string folder = config_folder();
  if (folder.empty()) return {};
  std::string name;
  for (const char c : device) {
    const bool is_alphanumeric = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_alphanumeric) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!is_alphanumeric && !name.empty() && name.back() != '-') name += '-';
  }
  return folder + "/profiles/" + name + ".json";
}

// Returns the profile that calibration wrote into `file`. Returns nothing if there is no file, or if the
// profile cannot be used; then `advice` is the reason. read(text, file): reads a profile. mismatch(profile):
// says of which other device a profile is; empty if it is of this device.
template <class Read, class Mismatch>
auto calibrated(const std::string& file, std::string& advice, const Read& read, const Mismatch& mismatch)
    -> std::optional<decltype(read(file, file))> {
  if (file.empty()) return std::nullopt;
  std::ifstream stream(file);
  if (!stream) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  constexpr const char* remedy = "`kintsugi calibrate` writes it anew";
  try {
    auto profile = read(text, file);
    if (const std::string other = mismatch(profile); !other.empty()) {
      advice = fmt::format("{} is of {}; {}", file, other, remedy);
      return std::nullopt;
    }
    if (profile.library_version != library_version) {
      advice = fmt::format("{} was made by version {}; {}", file, profile.library_version, remedy);
      return std::nullopt;
    }
    return profile;
  } catch (const std::exception& error) {
    advice = fmt::format("{}; {}", error.what(), remedy);
    return std::nullopt;
  }
}

}  // namespace kintsugi::core::profile_json
