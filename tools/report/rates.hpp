// Rows of kintsugi bench on pages.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// A row of kintsugi bench as figures take it: the name as its scheme, threads, batch and prepared operand as
// its accumulator, "rate" in GFLOP/s and "ratio_to_native", null without one; the row itself is its "bench".
// What a device computed has the device's name in place of the threads, "device_rate" in TFLOP/s instead of
// the rate, "of_ceiling" and the document's "ceilings".
Json rate_row(const Json& document, const Json& row);
bool is_rate_row(const Json& row);

// An HTML table of those among `rows`; "" for none.
std::string rate_table(const std::vector<Json>& rows);

}  // namespace kintsugi::tools
