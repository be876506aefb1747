// A benchmark: every contestant is checked, then all are timed, round by round.
#pragma once

#include "bench/request.hpp"

namespace kintsugi::tools {

// Returns the document (docs/schema/bench.schema.json), and writes it to `file` after every shape unless
// `file` is "". Throws Finding for a result that breaks its promise; then nothing of its shape is timed.
Json run_bench(const Bench& bench, const std::string& file);

}  // namespace kintsugi::tools
