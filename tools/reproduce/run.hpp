// One figure of the papers: its sweeps run, its pictures drawn, its claims judged.
#pragma once

#include <string>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

struct ReproduceOptions {
  std::string folder;
  bool quick = false;     // m, n scaled down to 32, k to 256, one seed: no verdicts
  bool recorded = false;  // rows that are in the folder, whatever commit left them: nothing is run
};

// Writes NAME.json (NAME-SWEEP.json), NAME.html and pictures into the folder, continuing the sweeps that are
// there; with `recorded` the pages and pictures alone. The result is an element of "figures" of
// docs/schema/reproduction.schema.json.
Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options);

}  // namespace kintsugi::tools
