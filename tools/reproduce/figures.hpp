// The papers' figures that can be reproduced here: sweeps, and claims with our figures beside theirs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "accuracy/sweep.hpp"
#include "report/figures.hpp"
#include "reproduce/claims.hpp"
#include "reproduce/evidence.hpp"

namespace kintsugi::tools {

// A claim of docs/results/claims.json that this figure measures.
struct Claim {
  std::string id;
  std::function<Measured(const Evidence&)> measure;  // the values of its series
  std::string explanation = {};                      // of what was found, where that is no agreement
};

struct PaperSweep {
  std::string name;  // a part of its file's name; "" for an only one
  SweepTexts lists;
};

// A document, with "rows", that no sweep makes: the whole of a figure, or rows beside its sweeps.
struct Analysis {
  std::string format;  // of docs/schema: "slice-counts"
  std::function<Json(bool quick)> document;
  std::function<std::vector<Figure>(const Json& document)> draw = {};  // where there are no sweeps
  std::string name = {};  // a part of its file's name beside sweeps
};

struct PaperFigure {
  std::string name;   // "h2sgemm-fig8"
  std::string paper;  // "h2sgemm"
  std::string place;  // "Fig. 8, section 4.1"
  std::string subject;
  std::string conditions;  // what is as in the paper, and what is not
  std::vector<PaperSweep> sweeps;
  Selection drawn;
  std::vector<Claim> claims;
  Analysis analysis = {};
};

// All, in the order of papers and figures.
const std::vector<PaperFigure>& paper_figures();

std::vector<PaperFigure> h2sgemm_figures();
PaperFigure h2sgemm_table_figure();
PaperFigure h2sgemm_underflow_figure();
std::vector<PaperFigure> le_gemm_figures();
std::vector<PaperFigure> study_figures();
std::vector<PaperFigure> mixpert_figures();
std::vector<PaperFigure> dgemm_tc_figures();
std::vector<PaperFigure> accumulation_figures();

}  // namespace kintsugi::tools
