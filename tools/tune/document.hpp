// Results of a tuning as a JSON document and as text.
#pragma once

#include <string>

#include "tune/tuner.hpp"

namespace kintsugi::tools {

Json tuning_document(const TuneRequest& request, const Tuning& tuning);

// Returns the command line that repeats the tuning.
std::string tune_command(const TuneRequest& request);

// Headings and cells of two tables, of the sites and of the search's steps, for the text and the HTML page.
std::vector<std::string> site_heads(const TuneRequest& request);
std::vector<std::string> site_cells(const TuneRequest& request, const Tuning& tuning, std::size_t site);
std::vector<std::string> step_heads(const TuneRequest& request);
std::vector<std::string> step_cells(const TuneRequest& request, const Tuning& tuning, std::size_t step);

// Returns sentences on the limit, the cost, the runs of the program and the validation.
std::vector<std::string> tuning_sentences(const TuneRequest& request, const Tuning& tuning);

}  // namespace kintsugi::tools
