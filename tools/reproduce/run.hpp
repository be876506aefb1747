// Reproduces one figure of the papers: runs its sweeps, draws its pictures, judges its claims.
#pragma once

#include <string>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

struct ReproduceOptions {
  std::string folder;
  bool quick = false;     // m, n scaled down to 32, k to 256, one seed: no verdicts
  bool recorded = false;  // uses the rows in the folder, made by any commit: nothing is run
};

// Writes NAME.json (NAME-SWEEP.json), NAME.html and pictures into the folder, continuing existing sweeps;
// with `recorded` only the pages and pictures. Returns an element of "figures" of
// docs/schema/reproduction.schema.json.
Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options);

}  // namespace kintsugi::tools
