// The page of `kintsugi demo`: findings in words, then speed and errors as pictures and tables.
#pragma once

#include <string>

#include "demo/measure.hpp"

namespace kintsugi::tools {

// Returns one line about the operands.
std::string demo_subject(const Demo& demo);
// These return the heads of the table and the cells of a row: product, size, type, threads, bits, share of
// correctly rounded elements, largest error, time, rate, ratio.
std::vector<std::string> demo_heads(const Demo& demo);
std::vector<std::string> demo_cells(const Demo& demo, const Json& row);

std::string demo_page(const Demo& demo, const std::string& command);

}  // namespace kintsugi::tools
