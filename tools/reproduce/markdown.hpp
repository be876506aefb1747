// Makes lab/results/accuracy.md: every claim with our value and our verdict.
#pragma once

#include <string>

#include "support.hpp"

namespace kintsugi::tools {

// Returns the page for a document of docs/schema/reproduction.schema.json.
std::string markdown_of(const Json& document);

}  // namespace kintsugi::tools
