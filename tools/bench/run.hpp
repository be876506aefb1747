// A benchmark: every contestant is checked, then all are timed, round by round.
#pragma once

#include "bench/request.hpp"

namespace kintsugi::tools {

// The document (docs/schema/bench.schema.json). It is written to `file`, unless that is "", after every
// shape. Throws Finding for a result that does not keep what is promised; nothing of its shape is timed then.
Json run_bench(const Bench& bench, const std::string& file);

}  // namespace kintsugi::tools
