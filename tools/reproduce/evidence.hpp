// Rows of a figure's sweeps, and the questions that claims ask of them.
#pragma once

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// One way to compute.
struct Way {
  std::string scheme;
  std::string engine;
  std::string accumulator;  // "" for native
};

using Filter = std::function<bool(const Json& row)>;

// Errors of two ways in the same cell: problem, distribution and seed.
struct Pair {
  double one;
  double other;
  double ratio() const { return one / other; }
};

// A question about rows that are not there.
class NoSuchRow : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class Evidence {
 public:
  explicit Evidence(std::vector<Json> rows) : rows_(std::move(rows)) {}

  const std::vector<Json>& rows() const { return rows_; }
  // Rows of a way, by k, then m; fails where there is none.
  std::vector<Json> of(const Way& way, const Filter& filter) const;
  std::vector<double> errors(const Way& way, const char* measure, const Filter& filter) const;
  // Fails where there is none.
  std::vector<Pair> pairs(const Way& one, const Way& other, const char* measure, const Filter& filter) const;
  // Every k of the rows.
  std::set<double> lengths(const Filter& filter) const;
  double largest_k() const;

 private:
  std::vector<Json> rows_;
};

Filter everywhere();
Filter in_distribution(const std::string& text);
// Distributions NAME:P with P from `least` to `most`.
Filter with_parameter(const std::string& name, double least, double most);
Filter with_k(double least);
Filter of_length(double k);
Filter both(const Filter& one, const Filter& other);

double mean(const std::vector<double>& values);
std::vector<double> ratios(const std::vector<Pair>& pairs);
double least(const std::vector<double>& values);
double most(const std::vector<double>& values);
// "0.83 to 1.2", or one number where they are the same.
std::string range_text(const std::vector<double>& values);

}  // namespace kintsugi::tools
