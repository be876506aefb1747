// Checks the members that pages and figures read in files of kintsugi-lab accuracy and kintsugi bench.
#pragma once

#include <string>

#include "tools/support.hpp"

namespace kintsugi::tools {

// Fails for the first value that violates lab/schema/accuracy.schema.json. The message names the file, the
// row and the member.
void check_accuracy(const std::string& file, const Json& document);
// Like check_accuracy(), by docs/schema/bench.schema.json.
void check_bench(const std::string& file, const Json& document);

}  // namespace kintsugi::tools
