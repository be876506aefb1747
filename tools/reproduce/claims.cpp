#include "reproduce/claims.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

// Text of lab/results/claims.json in pieces, made by embed_claims.cmake.
extern const char* const kintsugi_claims_text[];

namespace kintsugi::tools {

namespace {

constexpr std::size_t max_listed_values = 6;
constexpr std::size_t max_listed_names = 4;

// True if the last value is larger than the first, and every value is at least (1 - tolerance) times the
// largest value before it.
bool rises(const std::vector<double>& values, double tolerance) {
  double largest = values.front();
  for (const double value : values) {
    if (value < (1 - tolerance) * largest) return false;
    largest = std::max(largest, value);
  }
  return values.back() > values.front();
}

const SeriesValues* find_series(const Measured& measured, const std::string& name) {
  const auto found = std::find_if(measured.begin(), measured.end(),
                                  [&](const SeriesValues& series) { return series.name == name; });
  return found == measured.end() || found->values.empty() ? nullptr : &*found;
}

void require_listed(const Json& claim, const Measured& measured) {
  for (const SeriesValues& series : measured) {
    const auto has_name = [&](const Json& listed) { return listed.at("name") == series.name; };
    if (std::none_of(claim.at("series").begin(), claim.at("series").end(), has_name))
      throw std::logic_error(fmt::format("claim {} has no series \"{}\"", cell(claim, "id"), series.name));
  }
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), max_listed_names); ++i)
    text += (i == 0 ? "" : "; ") + names[i];
  return names.size() > max_listed_names
             ? fmt::format("{} and {} more", text, names.size() - max_listed_names)
             : text;
}

// Returns the verdict on alternatives. `alternatives`: name -> true if it meets the criterion. All must meet
// it, since the paper does not say which alternative it means.
Judgement by_alternatives(const std::map<std::string, bool>& alternatives,
                          const std::vector<std::string>& missed) {
  const auto held = std::count_if(alternatives.begin(), alternatives.end(),
                                  [](const auto& alternative) { return alternative.second; });
  if (held == std::ssize(alternatives)) return {"agrees", ""};
  const std::string misses = "Misses the criterion: " + names_text(missed) + ".";
  if (held == 0) return {"disagrees", misses};
  return {
      "cannot be decided here",
      fmt::format("{} of {} alternatives meet the criterion, and the paper does not say which is its own. {}",
                  held, alternatives.size(), misses)};
}

}  // namespace

const Json& registered_claims() {
  static const Json registry = [] {
    std::string text;
    for (const char* const* piece = kintsugi_claims_text; *piece != nullptr; ++piece) text += *piece;
    return Json::parse(text);
  }();
  return registry.at("claims");
}

const Json& registered_claim(const std::string& id) {
  for (const Json& claim : registered_claims()) {
    if (claim.at("id") == id) return claim;
  }
  throw std::logic_error("there is no claim " + id);
}

bool meets(const Json& criterion, const std::vector<double>& values) {
  const auto form = criterion.at("form").get<std::string>();
  const auto number = [&](const char* name) { return criterion.at(name).get<double>(); };
  const auto all = [&](auto&& holds) { return std::all_of(values.begin(), values.end(), holds); };
  if (values.empty()) return false;
  if (form == "at_most") return all([&](double value) { return value <= number("limit"); });
  if (form == "at_least") return all([&](double value) { return value >= number("limit"); });
  if (form == "less_than") return all([&](double value) { return value < number("limit"); });
  if (form == "more_than") return all([&](double value) { return value > number("limit"); });
  if (form == "equals") return all([&](double value) { return value == number("value"); });
  if (form == "between")
    return all([&](double value) { return value >= number("low") && value <= number("high"); });
  if (form == "within_factor") {
    const double low = number("of") / number("factor");
    const double high = number("of") * number("factor");
    return all([&](double value) { return value >= low && value <= high; });
  }
  if (form == "rising") return rises(values, number("tolerance"));
  if (form == "steady") {
    const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
    return *largest <= (1 + number("tolerance")) * *smallest;
  }
  throw std::logic_error("there is no form of criteria " + form);
}

Judgement judge(const Json& claim, const Measured& measured) {
  require_listed(claim, measured);
  if (claim.at("decided") == "nowhere") return {"cannot be decided here", cell(claim, "reason")};
  std::map<std::string, bool> alternatives;
  std::vector<std::string> missed;
  for (const Json& series : claim.at("series")) {
    const auto name = series.at("name").get<std::string>();
    const SeriesValues* found = find_series(measured, name);
    if (found == nullptr) return {"not measured", fmt::format("There is no value of \"{}\".", name)};
    const Json& criterion = series.contains("criterion") ? series.at("criterion") : claim.at("criterion");
    const bool held = meets(criterion, found->values);
    if (!held) missed.push_back(name);
    const std::string alternative = series.value("alternative", "");
    alternatives[alternative] = held && (!alternatives.contains(alternative) || alternatives[alternative]);
  }
  return by_alternatives(alternatives, missed);
}

std::string measured_text(const Measured& measured) {
  std::string text;
  for (const SeriesValues& series : measured) {
    if (series.values.empty()) continue;
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", series.name);
    if (series.values.size() <= max_listed_values) {
      for (std::size_t i = 0; i < series.values.size(); ++i)
        text += fmt::format("{}{:.3g}", i == 0 ? "" : ", ", series.values[i]);
    } else {
      const auto [smallest, largest] = std::minmax_element(series.values.begin(), series.values.end());
      text += fmt::format("{:.3g} to {:.3g}", *smallest, *largest);
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace kintsugi::tools
