// Finds which site's results feed which site: a call whose input overlaps an earlier call's output reads that
// result.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "region.hpp"

namespace kintsugi::blas {

// For each site that feeds this one: calls of this one that read a result of it.
using SiteInputs = std::map<const Site*, std::int64_t>;

// Outputs of the latest calls. What a program does to their memory between calls is not seen: copies are not
// followed, and memory that is used again for other data still counts as the output.
class Flow {
 public:
  // Adds to `inputs` the sites whose outputs the call reads, then notes its own output.
  void add(const Call& call, SiteInputs& inputs);

 private:
  struct Output {
    Region region;
    const Site* site;
  };
  // An output that a later one covers is no longer there; beyond this number the oldest are forgotten.
  static constexpr std::size_t most_outputs = 4096;
  std::vector<Output> outputs_;  // the oldest first
};

}  // namespace kintsugi::blas
