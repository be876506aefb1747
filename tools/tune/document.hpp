// Results of a tuning as a JSON document and as text.
#pragma once

#include <string>

#include "tune/tuner.hpp"

namespace kintsugi::tools {

Json tuning_document(const TuneRequest& request, const Tuning& tuning);

// Returns the command that made it.
std::string tune_command(const TuneRequest& request);

// Cells of the tables of sites and of steps, for text and page.
std::vector<std::string> site_heads(const TuneRequest& request);
std::vector<std::string> site_cells(const TuneRequest& request, const Tuning& tuning, std::size_t site);
std::vector<std::string> step_heads(const TuneRequest& request);
std::vector<std::string> step_cells(const TuneRequest& request, const Tuning& tuning, std::size_t step);

// Sentences on limit, cost, runs and validation.
std::vector<std::string> tuning_sentences(const TuneRequest& request, const Tuning& tuning);

std::string site_label(const TunedSite& site);

}  // namespace kintsugi::tools
