// Reproduces one figure of the papers: runs its sweeps, draws its pictures, judges its claims.
#pragma once

#include <string>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

struct ReproduceOptions {
  std::string folder;
  bool quick = false;     // true: m and n are scaled down to 32, k to 256; one seed and no verdicts
  bool recorded = false;  // true: runs nothing, reads the rows in the folder, whatever commit made them
};

// Writes NAME.json (NAME-SWEEP.json), NAME.html and pictures into the folder, continuing existing sweeps;
// with `recorded` only the pages and pictures. Returns an element of "figures" of
// docs/schema/reproduction.schema.json.
Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options);

}  // namespace kintsugi::tools
