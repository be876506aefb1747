// The papers' figures that can be reproduced here: sweeps, and claims with our figures beside theirs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "accuracy/sweep.hpp"
#include "report/figures.hpp"
#include "reproduce/evidence.hpp"

namespace kintsugi::tools {

enum class Verdict : std::uint8_t { agrees, disagrees, undecidable };
const char* verdict_text(Verdict verdict);

struct Answer {
  Verdict verdict;
  std::string ours;         // our figure
  std::string reason = {};  // why it disagrees, or cannot be decided; "" where it agrees
};
Answer agrees_if(bool agrees, const std::string& ours, const std::string& reason);
Answer undecidable(const std::string& ours, const std::string& reason);

struct Claim {
  std::string text;    // in our words
  std::string theirs;  // the paper's figure
  std::function<Answer(const Evidence&)> judge;
};

struct PaperSweep {
  std::string name;  // a part of its file's name; "" for an only one
  SweepTexts lists;
};

// A figure that is no sweep: its document, with "rows", and how that is drawn.
struct Analysis {
  std::function<Json(bool quick)> document;
  std::function<std::vector<Figure>(const Json& document)> draw;
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
  Analysis analysis = {};  // where there are no sweeps
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
