// The registry of claims (lab/results/claims.json, embedded in the program), queries of measured rows for
// them, and verdicts by their criteria.
#pragma once

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/support.hpp"

namespace kintsugi::tools {

// --------------------------------------------------------------- evidence

// Rows are those of a figure's sweeps and of its analysis. A row of a sweep has the errors of one method on
// one problem, distribution and seed. A method of computing products: a scheme, or `native`, on an engine.
struct SchemeOnEngine {
  std::string scheme;
  std::string engine;
  std::string accumulator;  // "" for native
};

using Filter = std::function<bool(const Json& row)>;

// Thrown if a query matches no row.
class NoSuchRow : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class Evidence {
 public:
  explicit Evidence(std::vector<Json> rows) : rows_(std::move(rows)) {}

  const std::vector<Json>& rows() const { return rows_; }
  std::vector<Json> rows_where(const Filter& filter) const;
  // Returns the rows of a method, ordered by k, then m. Fails if there is none.
  std::vector<Json> rows_of(const SchemeOnEngine& method, const Filter& filter) const;
  std::vector<double> errors(const SchemeOnEngine& method, const char* measure, const Filter& filter) const;
  // Returns the errors of x over those of y on the same problem, distribution and seed, in the order of x's
  // rows. Fails if there is none.
  std::vector<double> ratios(const SchemeOnEngine& x, const SchemeOnEngine& y, const char* measure,
                             const Filter& filter) const;
  // Returns every k of the rows that pass the filter.
  std::set<double> lengths(const Filter& filter) const;
  double largest_k() const;

 private:
  std::vector<Json> rows_;
};

Filter everywhere();  // passes all rows
// Returns a filter for rows whose member has the value.
Filter where(const std::string& member, const Json& value);
Filter in_distribution(const std::string& text);
// Returns a filter for distributions NAME:P with P from `min` to `max`.
Filter with_parameter(const std::string& name, double min, double max);
Filter from_k(double min);  // passes rows with k >= min
Filter at_k(double k);
Filter both(const Filter& x, const Filter& y);

double mean(const std::vector<double>& values);

// --------------------------------------------------------------- verdicts

// Measured values of one series of a claim.
struct SeriesValues {
  std::string name;
  std::vector<double> values;
};
using Measured = std::vector<SeriesValues>;

struct Judgement {
  std::string verdict;  // one of rules.verdicts
  std::string
      why;  // series that miss the criterion, or the reason why the claim is not decided; "" if it agrees
};

// Returns all claims, in the registry's order.
const Json& registered_claims();
// Returns the claim with the id; fails if there is none, which is an error in the program.
const Json& registered_claim(const std::string& id);

// True if the values meet the criterion, which has one of the forms of rules.forms; false if there is no
// value.
bool meets(const Json& criterion, const std::vector<double>& values);

// Returns the verdict by the registry's rules. Fails for series that the claim does not list, which is an
// error in the program.
Judgement judge(const Json& claim, const Measured& measured);

// Returns the values as text, by series; "none" if there are none.
std::string measured_text(const Measured& measured);

}  // namespace kintsugi::tools
