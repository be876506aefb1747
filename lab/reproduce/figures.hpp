// Figures of papers that Kintsugi reproduces: their sweeps, and how the papers' claims are measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/accuracy/sweep.hpp"
#include "lab/reproduce/claims.hpp"
#include "tools/report/figures.hpp"

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
  std::string format;  // name in lab/schema: "slice-counts"
  std::function<Json(bool quick)> make_document = {};
  std::function<std::vector<Figure>(const Json& document)> draw = {};  // set if there are no sweeps
  std::string name = {};  // the document's file is FIGURE-NAME.json; "" if there are no sweeps: FIGURE.json
  bool needs_device = false;  // it times products on a CUDA device
  bool takes_long = false;    // it takes more than ten minutes: `all` leaves it out without --full
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

// Each is in the file of its paper.
std::vector<PaperFigure> h2sgemm_split_figures();
std::vector<PaperFigure> h2sgemm_figures();
PaperFigure h2sgemm_ascend_figure();
std::vector<PaperFigure> le_gemm_figures();
PaperFigure le_gemm_averages_figure();
PaperFigure le_gemm_speed_figure();
std::vector<PaperFigure> study_figures();
PaperFigure study_pareto_figure();
std::vector<PaperFigure> mixpert_figures();
PaperFigure mixpert_programs_figure();
std::vector<PaperFigure> mixpert_large_figures();
std::vector<PaperFigure> mixpert_speed_figures();
std::vector<PaperFigure> dgemm_tc_figures();
PaperFigure dgemm_tc_batched_figure();
std::vector<PaperFigure> printed_figures();
std::vector<PaperFigure> predicted_figures();
std::vector<PaperFigure> accumulation_figures();

// Returns the document of an analysis, with "samples", "seed" and no rows yet. "samples" also tells a
// document of --quick from one of a full run.
Json analysis_document(const std::string& format, std::int64_t samples, std::uint64_t seed);

// Returns the line with the points (x, y) of the document's rows: x is a member, and y(row) is null for rows
// that the line leaves out.
Series line_of(Series line, const Json& document, const char* x, const std::function<Json(const Json&)>& y);

inline Measured joined(Measured measured, const Measured& others) {
  measured.insert(measured.end(), others.begin(), others.end());
  return measured;
}

// Returns make(item of the first list, item of the second, ...), a series, for all combinations. The items of
// the last list alternate fastest.
template <class Make, class List, class... Lists>
Measured series_of(const Make& make, const List& list, const Lists&... lists) {
  Measured measured;
  for (const auto& item : list) {
    if constexpr (sizeof...(lists) == 0) {
      measured.push_back(make(item));
    } else {
      const auto with_item = [&](const auto&... items) { return make(item, items...); };
      measured = joined(std::move(measured), series_of(with_item, lists...));
    }
  }
  return measured;
}

}  // namespace kintsugi::tools
