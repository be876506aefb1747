// Converts rows of kintsugi bench to the form that figures need, and makes their table for a page.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// Returns a row of kintsugi bench in the form that figures need. There, scheme, engine and accumulator of a
// row distinguish lines. The members are:
//   "scheme"           the row's name
//   "accumulator"      threads (or the device's name), batch and prepared operand
//   "rate"             in GFLOP/s; null for a device
//   "device_rate"      in TFLOP/s; null for the host
//   "ratio_to_native"  null if native was not timed
//   "of_ceiling", "ceilings" of the document   null for the host
//   "bench"            the row itself
Json rate_row(const Json& document, const Json& row);
bool is_rate_row(const Json& row);

// Return members of a row of kintsugi bench as text: a time ("-" for null), a fraction, its check.
std::string seconds_text(const Json& seconds);
std::string percent_text(const Json& fraction);
std::string check_text(const Json& check);

// Returns an HTML table of the rate rows among `rows`; "" if there are none.
std::string rate_table(const std::vector<Json>& rows);

}  // namespace kintsugi::tools
