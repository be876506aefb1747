#include "lab/reproduce/claims.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

// Text of lab/results/claims.json in pieces, made by embed_claims.cmake.
extern const char* const kintsugi_claims_text[];

namespace kintsugi::tools {

// --------------------------------------------------------------- evidence

namespace {

// Returns m, n or k.
double size(const Json& row, const char* name) { return row.at("problem").at(name).get<double>(); }

bool have_same_operands(const Json& x, const Json& y) {
  return x.at("problem") == y.at("problem") && x.at("distribution") == y.at("distribution") &&
         x.at("seed") == y.at("seed");
}

// Throws where a claim queries rows that its sweep does not have, which is an error in the program.
[[noreturn]] void throw_no_such_row(const SchemeOnEngine& method) {
  throw NoSuchRow(
      fmt::format("no such row of {} on {} {}", method.scheme, method.engine, method.accumulator));
}

double error_of(const Json& row, const char* measure) { return read_number(row.at("errors").at(measure)); }

}  // namespace

std::vector<Json> Evidence::rows_where(const Filter& filter) const {
  std::vector<Json> found;
  std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(found), filter);
  return found;
}

std::vector<Json> Evidence::rows_of(const SchemeOnEngine& method, const Filter& filter) const {
  std::vector<Json> found = rows_where([&](const Json& row) {
    return cell(row, "scheme") == method.scheme && cell(row, "engine") == method.engine &&
           cell(row, "accumulator") == method.accumulator && filter(row);
  });
  if (found.empty()) throw_no_such_row(method);
  std::stable_sort(found.begin(), found.end(), [](const Json& x, const Json& y) {
    return std::pair(size(x, "k"), size(x, "m")) < std::pair(size(y, "k"), size(y, "m"));
  });
  return found;
}

std::vector<double> Evidence::errors(const SchemeOnEngine& method, const char* measure,
                                     const Filter& filter) const {
  std::vector<double> values;
  for (const Json& row : rows_of(method, filter)) values.push_back(error_of(row, measure));
  return values;
}

std::vector<double> Evidence::ratios(const SchemeOnEngine& x, const SchemeOnEngine& y, const char* measure,
                                     const Filter& filter) const {
  std::vector<double> found;
  const std::vector<Json> rows_of_y = rows_of(y, filter);
  for (const Json& row_x : rows_of(x, filter)) {
    for (const Json& row_y : rows_of_y) {
      if (have_same_operands(row_x, row_y))
        found.push_back(error_of(row_x, measure) / error_of(row_y, measure));
    }
  }
  if (found.empty()) throw_no_such_row(x);
  return found;
}

std::set<double> Evidence::lengths(const Filter& filter) const {
  std::set<double> found;
  for (const Json& row : rows_) {
    if (filter(row)) found.insert(size(row, "k"));
  }
  return found;
}

double Evidence::largest_k() const {
  const std::set<double> all = lengths(everywhere());
  return all.empty() ? 0 : *all.rbegin();
}

Filter everywhere() {
  return [](const Json&) { return true; };
}

Filter where(const std::string& member, const Json& value) {
  return [=](const Json& row) { return row.value(member, Json()) == value; };
}

Filter in_distribution(const std::string& text) { return where("distribution", text); }

Filter with_parameter(const std::string& name, double min, double max) {
  return [=](const Json& row) {
    const std::string text = cell(row, "distribution");
    if (!text.starts_with(name + ":")) return false;
    const double value = parse_number("distribution", text.substr(name.size() + 1));
    return value >= min && value <= max;
  };
}

Filter from_k(double min) {
  return [min](const Json& row) { return size(row, "k") >= min; };
}

Filter at_k(double k) {
  return [k](const Json& row) { return size(row, "k") == k; };
}

Filter both(const Filter& x, const Filter& y) {
  return [=](const Json& row) { return x(row) && y(row); };
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// --------------------------------------------------------------- verdicts

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
  for (const SeriesValues& series : measured) {
    if (series.name == name && !series.values.empty()) return &series;
  }
  return nullptr;
}

void require_listed(const Json& claim, const Measured& measured) {
  for (const SeriesValues& series : measured) {
    const auto has_name = [&](const Json& listed) { return listed.at("name") == series.name; };
    if (std::none_of(claim.at("series").begin(), claim.at("series").end(), has_name))
      throw std::logic_error(fmt::format("claim {} has no series \"{}\"", cell(claim, "id"), series.name));
  }
}

std::string names_text(const std::vector<std::string>& names) {
  if (names.size() <= max_listed_names) return fmt::format("{}", fmt::join(names, "; "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + max_listed_names, "; "),
                     names.size() - max_listed_names);
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

// Returns the verdict on a claim whose evidence is not of the paper's chip: `word` if it meets the criteria.
// A miss says nothing of that chip.
Judgement by_weaker_evidence(const Judgement& judgement, const char* word, const std::string& reason) {
  if (judgement.verdict == "agrees") return {word, reason};
  return {"cannot be decided here", reason + " " + judgement.why};
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
  const Judgement judgement = by_alternatives(alternatives, missed);
  const std::string decided = cell(claim, "decided");
  if (decided == "by prediction") return by_weaker_evidence(judgement, "predicted", cell(claim, "reason"));
  if (decided == "on another chip")
    return by_weaker_evidence(judgement, "holds on another chip", cell(claim, "reason"));
  return judgement;
}

std::string measured_text(const Measured& measured) {
  std::string text;
  for (const SeriesValues& series : measured) {
    if (series.values.empty()) continue;
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", series.name);
    if (series.values.size() <= max_listed_values) {
      text += fmt::format("{:.3g}", fmt::join(series.values, ", "));
    } else {
      const auto [smallest, largest] = std::minmax_element(series.values.begin(), series.values.end());
      text += fmt::format("{:.3g} to {:.3g}", *smallest, *largest);
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace kintsugi::tools
