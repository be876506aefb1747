// Rows of kintsugi bench on pages.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// Returns a row of kintsugi bench in the form for figures: its name as scheme; threads, batch and prepared
// operand as accumulator, by which figures distinguish lines; "rate" in GFLOP/s and "ratio_to_native", null
// if there is none; the row itself as "bench". A row of a device has the device's name instead of the
// threads, "device_rate" in TFLOP/s instead of the rate, "of_ceiling" and the document's "ceilings".
Json rate_row(const Json& document, const Json& row);
bool is_rate_row(const Json& row);

// Returns an HTML table of the rate rows among `rows`; "" if there are none.
std::string rate_table(const std::vector<Json>& rows);

}  // namespace kintsugi::tools
