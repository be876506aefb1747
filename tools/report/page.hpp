// A page with figures: one file of HTML, which is also well-formed XML and self-contained.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace kintsugi::tools {

// A document with "version", "commit", "machine" and "rows", and the command that makes it.
struct Source {
  std::string name;  // name of the file or of the run
  Json document;
  std::string command;
};

struct PageHead {
  std::string title;
  std::string preface;  // XHTML before the figures
};

// Returns the page. `sources`: listed at its beginning. `rows`: rows of kintsugi-lab accuracy and of
// rate_row() for the tables at its end.
std::string report_page(const PageHead& head, const std::vector<Source>& sources,
                        const std::vector<Json>& rows, const std::vector<Figure>& figures);

}  // namespace kintsugi::tools
