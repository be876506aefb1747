// Rows of a figure's sweeps and of its analysis, with queries for claims. A row of a sweep has the errors of
// one method on one problem, distribution and seed.
#pragma once

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/support.hpp"

namespace kintsugi::tools {

// A method of computing products: a scheme, or `native`, on an engine.
struct SchemeOnEngine {
  std::string scheme;
  std::string engine;
  std::string accumulator;  // "" for native
};

using Filter = std::function<bool(const Json& row)>;

// Errors of two methods on the same problem, distribution and seed.
struct ErrorPair {
  double first;
  double second;
  double ratio() const { return first / second; }
};

// Thrown if a query matches no row.
class NoSuchRow : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class Evidence {
 public:
  explicit Evidence(std::vector<Json> rows) : rows_(std::move(rows)) {}

  const std::vector<Json>& rows() const { return rows_; }
  // Returns the rows of a method, ordered by k, then m. Fails if there is none.
  std::vector<Json> rows_of(const SchemeOnEngine& method, const Filter& filter) const;
  std::vector<double> errors(const SchemeOnEngine& method, const char* measure, const Filter& filter) const;
  // Returns pairs of errors of x and y on the same problem, distribution and seed, in the order of x's rows.
  // Fails if there is no pair.
  std::vector<ErrorPair> pairs(const SchemeOnEngine& x, const SchemeOnEngine& y, const char* measure,
                               const Filter& filter) const;
  // Returns every k of the rows that pass the filter.
  std::set<double> lengths(const Filter& filter) const;
  double largest_k() const;

 private:
  std::vector<Json> rows_;
};

Filter everywhere();  // passes all rows
Filter in_distribution(const std::string& text);
// Returns a filter for distributions NAME:P with P from `min` to `max`.
Filter with_parameter(const std::string& name, double min, double max);
Filter from_k(double min);  // passes rows with k >= min
Filter at_k(double k);
Filter both(const Filter& x, const Filter& y);

double mean(const std::vector<double>& values);
std::vector<double> ratios(const std::vector<ErrorPair>& pairs);
double smallest(const std::vector<double>& values);
double largest(const std::vector<double>& values);
// Returns "0.83 to 1.2", or one number if both are the same.
std::string range_text(const std::vector<double>& values);

}  // namespace kintsugi::tools
