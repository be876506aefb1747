#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

const std::vector<PaperFigure>& paper_figures() {
  static const std::vector<PaperFigure> figures = [] {
    std::vector<PaperFigure> all;
    for (const auto& figures_of_paper :
         {h2sgemm_split_figures(), h2sgemm_figures(), std::vector{h2sgemm_ascend_figure()}, le_gemm_figures(),
          std::vector{le_gemm_averages_figure(), le_gemm_speed_figure()}, study_figures(),
          std::vector{study_pareto_figure()}, mixpert_figures(), mixpert_speed_figures(), dgemm_tc_figures(),
          std::vector{dgemm_tc_batched_figure()}, printed_figures(), predicted_figures(),
          accumulation_figures()})
      all.insert(all.end(), figures_of_paper.begin(), figures_of_paper.end());
    return all;
  }();
  return figures;
}

Json analysis_document(const std::string& format, std::int64_t samples, std::uint64_t seed) {
  Json result = document(format);
  result["samples"] = samples;
  result["seed"] = seed;
  result["rows"] = Json::array();
  return result;
}

Series line_of(Series line, const Json& document, const char* x, const std::function<Json(const Json&)>& y) {
  for (const Json& row : document.at("rows")) {
    const Json value = y(row);
    if (!value.is_null()) line.points.emplace_back(row.at(x).get<double>(), read_number(value));
  }
  return line;
}

}  // namespace kintsugi::tools
