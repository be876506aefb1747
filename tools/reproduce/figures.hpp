// Figures of papers that Kintsugi reproduces: their sweeps, and how the papers' claims are measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "accuracy/sweep.hpp"
#include "report/figures.hpp"
#include "reproduce/claims.hpp"
#include "reproduce/evidence.hpp"

namespace kintsugi::tools {

// A claim of lab/results/claims.json that this figure measures.
struct Claim {
  std::string id;
  std::function<Measured(const Evidence&)> measure;  // returns the values of its series
  std::string explanation = {};                      // reason why the finding does not agree; "": it agrees
};

struct PaperSweep {
  std::string name;  // the sweep's file is FIGURE-NAME.json; "" for the only sweep: FIGURE.json
  SweepTexts lists;
};

// A document with a member "rows" that is not made by a sweep. Its rows are all rows of a figure, or they are
// added to the rows of the figure's sweeps.
struct Analysis {
  std::string format;  // name in docs/schema: "slice-counts"
  std::function<Json(bool quick)> make_document = {};
  std::function<std::vector<Figure>(const Json& document)> draw = {};  // set if there are no sweeps
  std::string name = {};  // the document's file is FIGURE-NAME.json; "" if there are no sweeps: FIGURE.json
  bool needs_device = false;  // it times products on a CUDA device
};

struct PaperFigure {
  std::string name;   // "h2sgemm-fig8"
  std::string paper;  // "h2sgemm"
  std::string place;  // "Fig. 8, section 4.1"
  std::string subject;
  std::string conditions;  // conditions of the measurements, and how they differ from the paper's
  std::vector<PaperSweep> sweeps = {};
  Selection drawn = {};  // pictures of the sweeps' rows
  std::vector<Claim> claims = {};
  Analysis analysis = {};
};

// Returns all figures, in the order of papers and figures.
const std::vector<PaperFigure>& paper_figures();

std::vector<PaperFigure> h2sgemm_figures();
PaperFigure h2sgemm_table_figure();
PaperFigure h2sgemm_underflow_figure();
std::vector<PaperFigure> le_gemm_figures();
std::vector<PaperFigure> study_figures();
std::vector<PaperFigure> mixpert_figures();
PaperFigure mixpert_levels_figure();
PaperFigure mixpert_arithmetic_figure();
PaperFigure mixpert_programs_figure();
std::vector<PaperFigure> mixpert_speed_figures();
std::vector<PaperFigure> dgemm_tc_figures();
std::vector<PaperFigure> accumulation_figures();

}  // namespace kintsugi::tools
