// Call sites in the report, and the files of their last outputs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "blas/report/report.hpp"

namespace kintsugi::blas {

// Returns the sites by module and offset, which is the order of their ordinal numbers.
nlohmann::ordered_json sites_json(const Record& record);

void print_sites(const Record& record);

// Writes each site's last C to the folder that the sites file names, as <ordinal>.npy; a line on stderr for a
// file that cannot be written.
void write_outputs(const Record& record);

}  // namespace kintsugi::blas
