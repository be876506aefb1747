// A page with figures: one file of HTML, which is also well-formed XML and self-contained.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"
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

// Returns an HTML table of the rows, of which there is at least one. A cell `no` is conspicuous.
std::string html_table(const std::vector<HeadedCells>& rows);

// A document with "version", "commit", "machine" and "rows", and the command that makes it.
struct Source {
  std::string name;  // name of the file or of the run
  Json document;
  std::string command;
};

struct PageHead {
  std::string title;
  std::string preface;        // XHTML before the figures
  std::string appendix = {};  // XHTML after the figures and the tables of rows
};

// Returns the page. `sources`: listed at its beginning. `rows`: rows of kintsugi-lab accuracy and of
// rate_row() for the tables at its end.
std::string report_page(const PageHead& head, const std::vector<Source>& sources,
                        const std::vector<Json>& rows, const std::vector<Figure>& figures);

}  // namespace kintsugi::tools
