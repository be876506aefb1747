// Runs a sweep and makes its document, for `kintsugi-lab accuracy` and other commands.
#pragma once

#include <cstddef>
#include <string>

#include "lab/accuracy/sweep.hpp"

namespace kintsugi::tools {

struct SweepOutcome {
  Json document;                // lab/schema/accuracy.schema.json
  std::size_t rows_before = 0;  // number of rows that the file had before the run
  int refused = 0;              // number of rows that are left out because their scheme refuses the operands
  std::string first_refusal;
  int bound_violations = 0;  // number of rows beyond their scheme's a-priori bound
  std::string first_violation;
};

// Runs a sweep and adds its rows to `file`; if `file` is "", rows are in memory only. `name`: text in front
// of the progress bar.
SweepOutcome run_sweep(const Sweep& sweep, const std::string& file, const std::string& name = "accuracy");

// Returns the sweep that is recorded in `file`, whatever commit made it.
SweepOutcome recorded_sweep(const std::string& file);

// Returns the document in `file`, which must be one of lab/schema/FORMAT.schema.json. Fails if the file does
// not exist or has another content.
Json recorded_document(const std::string& file, const std::string& format);

}  // namespace kintsugi::tools
