// Data flow between the call sites of a program: by the compiler pass (static), and by the memory of operands
// in the profiling run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// A site whose results another site reads.
struct FlowInput {
  std::string site;
  std::int64_t calls = 0;  // calls that read its results in memory; 0: only the compiler has found it
  std::string operands =
      {};  // operands that may hold its results, by the compiler: "A", "BC"; "": memory only

  // Returns static, memory or both.
  const char* found_by() const { return operands.empty() ? "memory" : calls == 0 ? "static" : "both"; }
};

struct TunedSite;

// Returns the inputs of a site of a report: those in memory first, the most frequent before others. `sites`:
// all sites of the report.
std::vector<FlowInput> inputs_of(const Json& site, const Json& sites);

// Returns a number for each site. Sites of the same type have the same number if results of sites reach them
// as the same operands, and their own results reach other sites as the same operands. A site without a record
// of the compiler pass has a number of its own. Returns {} if no site has a record.
std::vector<std::size_t> roles_of(const std::vector<TunedSite>& sites);

}  // namespace kintsugi::tools
