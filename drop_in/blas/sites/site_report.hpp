// Call sites in the report, and the files of their last outputs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "blas/report/report.hpp"

namespace kintsugi::blas {

// Returns the sites in the order of their ordinal numbers: by module, then by offset.
nlohmann::ordered_json sites_json(const Record& record);

void print_sites(const Record& record);

// Writes each site's last C to <ordinal>.npy in the folder that the sites file names. A file that cannot be
// written is a line on stderr.
void write_outputs(const Record& record);

}  // namespace kintsugi::blas
