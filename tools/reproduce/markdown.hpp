// Makes docs/results/accuracy.md: every claim with our value and our verdict.
#pragma once

#include <string>

#include "support.hpp"

namespace kintsugi::tools {

// Returns the page for a document of docs/schema/reproduction.schema.json; links are relative to the folder
// of `file`.
std::string markdown_of(const Json& document, const std::string& file);

}  // namespace kintsugi::tools
