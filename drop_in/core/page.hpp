// The page of KINTSUGI_REPORT=report.html.
#pragma once

#include <string>

namespace kintsugi::drop_in {

// Returns the JSON document of a report as one page of HTML, which is also well-formed XML.
std::string report_page(const std::string& document);

}  // namespace kintsugi::drop_in
