// Runs a sweep from its lists to its document, for `kintsugi accuracy` and other commands.
#pragma once

#include <cstddef>
#include <string>

#include "accuracy/sweep.hpp"

namespace kintsugi::tools {

struct SweepOutcome {
  Json document;                // docs/schema/accuracy.schema.json
  std::size_t rows_before = 0;  // that the file had already
  int refused = 0;              // rows left out, since their scheme does not take their operands
  std::string first_refusal;
  int bound_violations = 0;  // rows beyond their scheme's a-priori bound
  std::string first_violation;
};

// Runs a sweep into `file`, continuing the rows there; "": in memory only. `name`: text before the bar.
SweepOutcome run_sweep(const Sweep& sweep, const std::string& file, const std::string& name = "accuracy");

// Returns the rows in `file`, made by any commit.
SweepOutcome recorded_sweep(const std::string& file);

// Returns a document of docs/schema/FORMAT.schema.json; fails if the file does not exist or is no such
// document.
Json recorded_document(const std::string& file, const std::string& format);

}  // namespace kintsugi::tools
