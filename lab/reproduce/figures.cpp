#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

const std::vector<PaperFigure>& paper_figures() {
  static const std::vector<PaperFigure> figures = [] {
    std::vector<PaperFigure> all{h2sgemm_table_figure(), h2sgemm_underflow_figure()};
    for (const auto& figures_of_paper :
         {h2sgemm_figures(), le_gemm_figures(), study_figures(), mixpert_figures(), mixpert_speed_figures(),
          dgemm_tc_figures(), accumulation_figures()})
      all.insert(all.end(), figures_of_paper.begin(), figures_of_paper.end());
    return all;
  }();
  return figures;
}

}  // namespace kintsugi::tools
