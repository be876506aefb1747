// A sweep from its lists to its document: what `kintsugi accuracy` and other commands run.
#pragma once

#include <cstddef>
#include <string>

#include "accuracy/sweep.hpp"

namespace kintsugi::tools {

struct SweepOutcome {
  Json document;                // docs/schema/accuracy.schema.json
  std::size_t rows_before = 0;  // that the file had already
  int refused = 0;              // rows left out: their scheme does not cover their operands
  std::string first_refusal;
  int bound_violations = 0;  // rows beyond their scheme's a-priori bound
  std::string first_violation;
};

// Runs a sweep into `file`, continuing what is there; "": in memory alone. `name` stands before the bar.
SweepOutcome run_sweep(const Sweep& sweep, const std::string& file, const std::string& name = "accuracy");

// The rows that are in `file`, whatever commit left them.
SweepOutcome recorded_sweep(const std::string& file);

// A document of docs/schema/FORMAT.schema.json; fails where the file is not there or is no such document.
Json recorded_document(const std::string& file, const std::string& format);

}  // namespace kintsugi::tools
