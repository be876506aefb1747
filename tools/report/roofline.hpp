// Rooflines: rates of products relative to a device's ceilings, by operations per byte of their matrices.
#pragma once

#include <vector>

#include "report/charts/looks.hpp"
#include "report/figures.hpp"

namespace kintsugi::tools {

// Adds a figure for each device, distribution and type of rows of rate_row() with "ceilings". Its operations
// are those of the products of slices; a native product counts as one. Every measured ceiling that a row of
// the figure can reach is a line.
void add_rooflines(const std::vector<Json>& rows, Looks& looks, std::vector<Figure>& figures);

}  // namespace kintsugi::tools
