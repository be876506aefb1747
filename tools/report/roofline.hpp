// Rooflines: rates of products relative to a device's ceilings, by operations per byte of their matrices.
#pragma once

#include <vector>

#include "report/charts/looks.hpp"
#include "report/figures.hpp"

namespace kintsugi::tools {

// Adds a figure for each device, distribution and type among the rows of rate_row() that have "ceilings".
// Operations are those of the products of slices, of which a native product is one. The ceilings of the
// memory and of the units that the figure's rows use are lines, unless they lie beyond all points.
void add_rooflines(const std::vector<Json>& rows, Looks& looks, std::vector<Figure>& figures);

}  // namespace kintsugi::tools
