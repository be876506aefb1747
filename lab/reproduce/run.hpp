// Reproduces one figure of the papers: runs its sweeps, draws its pictures, judges its claims.
#pragma once

#include <string>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

struct ReproduceOptions {
  std::string folder;
  bool quick = false;  // true: m and n are scaled down to 32, and k to 256; there is one seed and no verdict
  bool recorded = false;  // true: nothing runs; rows are read from the folder, whatever commit made them
};

// Runs the sweeps of a figure and writes NAME.json (NAME-SWEEP.json), NAME.html and pictures into the folder.
// Existing sweeps are continued. With `recorded`, writes only pages and pictures. Returns an element of
// "figures" of lab/schema/reproduction.schema.json.
Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options);

}  // namespace kintsugi::tools
