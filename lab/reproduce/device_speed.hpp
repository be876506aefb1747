// Times and errors of square products in a device's memory, for figures of speed.
#pragma once

#include <string>
#include <vector>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

// Products that are timed in one run, round by round.
struct SquareProducts {
  std::vector<std::string> schemes;
  std::vector<std::int64_t> sizes;  // m = n = k
  std::string prepared = "none";    // operand that is split before timing: a, b or none
  std::string distribution = "uniform";
  bool with_native = false;        // times cuBLAS's product too, so that rows have a ratio to it
  bool measures_ceilings = false;  // measures the rates of the single units first
};

// Returns a document of lab/schema/device-speed.schema.json: the rows of all runs, and the ceilings of the
// run that measures them. With `quick` sizes are 256 and 512 where there are several, else 256. Fails if
// there is no device.
Json device_speed_document(const std::vector<SquareProducts>& runs, bool quick);

// These read the rows of that document.
struct SpeedKey {
  std::string scheme;
  std::int64_t n = 0;
  std::string prepared = "none";
  std::string distribution = "uniform";
};
// Returns a member of the row; fails if there is no such row.
double speed_value(const Evidence& evidence, const SpeedKey& key, const char* member);
double seconds_of(const Evidence& evidence, const SpeedKey& key);
// Returns the sizes that a scheme was timed at with no operand prepared, ascending; fails if there is none.
std::vector<std::int64_t> timed_sizes(const Evidence& evidence, const std::string& scheme);
// Returns a member of those rows, by size.
std::vector<double> by_size(const Evidence& evidence, const std::string& scheme, const char* member);
// Returns the time without both splits: each operand's split is what preparing it alone saves.
double seconds_without_splits(const Evidence& evidence, const std::string& scheme, std::int64_t n);

// Returns a chart of a member of the rows with no operand prepared against n, a line for each scheme.
std::vector<Figure> draw_by_size(const Json& document, const std::string& title, const char* member,
                                 const std::string& label);

}  // namespace kintsugi::tools
