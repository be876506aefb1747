// Distributions that dgemm-tc's figures share, and its figures of counts.
#pragma once

#include <string>
#include <vector>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

// Returns the distributions phi:P of the paper, by their ranges, the narrowest first.
std::vector<std::string> dgemm_tc_distributions();
// Returns the name of a distribution's range in the registry's series: "phi = 0.1".
std::string dgemm_tc_range(const std::string& distribution);

// Figs. 5 and 7, in dgemm_tc_counts.cpp.
PaperFigure dgemm_tc_dp_counts();
PaperFigure dgemm_tc_cr_counts();

}  // namespace kintsugi::tools
