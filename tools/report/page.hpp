// The page of `kintsugi report`: one file of HTML that is well-formed XML too and needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace kintsugi::tools {

// A file of kintsugi accuracy.
struct AccuracyFile {
  std::string name;
  Json document;
};

std::string report_page(const std::vector<AccuracyFile>& files, const std::vector<Json>& rows,
                        const std::vector<Figure>& figures);

}  // namespace kintsugi::tools
