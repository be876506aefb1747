#include "lab/reproduce/evidence.hpp"

#include <algorithm>
#include <numeric>

namespace kintsugi::tools {

namespace {

bool has_method(const Json& row, const SchemeOnEngine& method) {
  return cell(row, "scheme") == method.scheme && cell(row, "engine") == method.engine &&
         cell(row, "accumulator") == method.accumulator;
}

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

std::vector<Json> Evidence::rows_of(const SchemeOnEngine& method, const Filter& filter) const {
  std::vector<Json> found;
  for (const Json& row : rows_) {
    if (has_method(row, method) && filter(row)) found.push_back(row);
  }
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

std::vector<ErrorPair> Evidence::pairs(const SchemeOnEngine& x, const SchemeOnEngine& y, const char* measure,
                                       const Filter& filter) const {
  std::vector<ErrorPair> found;
  const std::vector<Json> rows_of_y = rows_of(y, filter);
  for (const Json& row_x : rows_of(x, filter)) {
    for (const Json& row_y : rows_of_y) {
      if (have_same_operands(row_x, row_y))
        found.push_back({error_of(row_x, measure), error_of(row_y, measure)});
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
  double largest = 0;
  for (const Json& row : rows_) largest = std::max(largest, size(row, "k"));
  return largest;
}

Filter everywhere() {
  return [](const Json&) { return true; };
}

Filter in_distribution(const std::string& text) {
  return [text](const Json& row) { return cell(row, "distribution") == text; };
}

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

std::vector<double> ratios(const std::vector<ErrorPair>& pairs) {
  std::vector<double> values;
  for (const ErrorPair& pair : pairs) values.push_back(pair.ratio());
  return values;
}

double smallest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

std::string range_text(const std::vector<double>& values) {
  const std::string smallest_text = fmt::format("{:.3g}", smallest(values));
  const std::string largest_text = fmt::format("{:.3g}", largest(values));
  return smallest_text == largest_text ? smallest_text : smallest_text + " to " + largest_text;
}

}  // namespace kintsugi::tools
