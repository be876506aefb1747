// The parts of dgemm-tc's figures.
#pragma once

#include <string>
#include <vector>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

// The paper's ranges.
std::vector<std::string> dgemm_tc_distributions();

// Figs. 5 and 7, and Table 1: in dgemm_tc_counts.cpp.
PaperFigure dgemm_tc_dp_counts();
PaperFigure dgemm_tc_cr_counts();
PaperFigure dgemm_tc_table();

}  // namespace kintsugi::tools
