// Finds which sites read the results of which sites. A call reads an earlier call's result if the memory of
// its input overlaps the memory of that call's output.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "place.hpp"
#include "region.hpp"

namespace kintsugi::drop_in {

// Inputs of one site: for each site whose results it has read, the number of calls that read them.
using SiteInputs = std::map<const Place*, std::int64_t>;

// Outputs of the latest calls. Flow does not see what the program does between calls: it does not follow
// copies, and memory that the program has reused for other data still counts as the output.
class Flow {
 public:
  // Adds the sites whose outputs a call of `site` reads to `found`, then notes the call's output. The site
  // must live as long as the object.
  void add(const Place& site, const std::vector<Region>& inputs, const Region& output, SiteInputs& found);

 private:
  struct Output {
    Region region;
    const Place* site;
  };
  // Largest number of outputs that are kept. The oldest one is dropped first.
  static constexpr std::size_t most_outputs = 4096;
  std::vector<Output> outputs_;  // the oldest first; without outputs that a later output covers
};

// Returns the member `inputs` of a site in the reports.
nlohmann::ordered_json inputs_json(const SiteInputs& inputs);

}  // namespace kintsugi::drop_in
