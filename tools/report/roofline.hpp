// Rooflines: rates of products relative to a device's ceilings, by operations per byte of their matrices.
#pragma once

#include <vector>

#include "report/charts/looks.hpp"
#include "report/figures.hpp"

namespace kintsugi::tools {

// Adds a figure for each device, distribution and type among the rows of rate_row() that have "ceilings".
// Operations are operations of products of slices; a native product counts as one. Lines show the ceilings of
// the memory and of the units that the figure's rows use, unless they lie beyond all points.
void add_rooflines(const std::vector<Json>& rows, Looks& looks, std::vector<Figure>& figures);

}  // namespace kintsugi::tools
