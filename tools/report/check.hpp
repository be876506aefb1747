// Whether a file holds what kintsugi accuracy or kintsugi bench writes, as far as pages and figures read it.
#pragma once

#include <string>

#include "support.hpp"

namespace kintsugi::tools {

// Fails, naming the file, the row and the member, for the first value that is not as
// docs/schema/accuracy.schema.json has it.
void check_accuracy(const std::string& file, const Json& document);
// The same by docs/schema/bench.schema.json.
void check_bench(const std::string& file, const Json& document);

}  // namespace kintsugi::tools
