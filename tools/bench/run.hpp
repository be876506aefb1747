// Runs a benchmark. Every contestant is checked, then all are timed, round by round.
#pragma once

#include "bench/request.hpp"

namespace kintsugi::tools {

// Returns the document (docs/schema/bench.schema.json). Writes it to `file` after every shape unless `file`
// is "". Throws a Finding if a result breaks its promise, before anything of that shape is timed.
Json run_bench(const Bench& bench, const std::string& file);

}  // namespace kintsugi::tools
