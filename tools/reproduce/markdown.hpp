// docs/results/accuracy.md: every claim beside our figure and our verdict.
#pragma once

#include <string>

#include "support.hpp"

namespace kintsugi::tools {

// Of a document of docs/schema/reproduction.schema.json; links lead from the folder of `file`.
std::string markdown_of(const Json& document, const std::string& file);

}  // namespace kintsugi::tools
