// Reads the parts of the library's JSON documents that the drop-ins need.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kintsugi::drop_in {

struct LibrarySettings {
  std::map<std::string, std::string> values;  // by name
  // Variables of the environment that name no setting, each with the variable that was probably meant.
  std::vector<std::pair<std::string, std::string>> misspelt_variables;
};
// Returns nothing if the library refuses a setting; kintsugi_last_error() then has the reason.
std::optional<LibrarySettings> library_settings();

struct PlanSummary {
  bool is_native = false;      // the native product is the only candidate
  bool may_be_native = false;  // the native product is the last candidate
  bool is_offloaded = false;   // GPUs multiply matrices of the host
  std::string candidates;      // names of the candidates' programs, cheapest first: "fp16x3, bf16x6, native"
  std::string why;             // the library's sentences on the decision
  std::string offload;         // its sentence on GPUs, which `why` ends with; "": there is none
};
PlanSummary summary_of(kintsugi_plan plan);

struct ExecutionSummary {
  std::string program;  // name of the candidate that multiplied; "": nothing was multiplied
  std::int64_t recomputed_elements = 0;
  bool has_special_values = false;
  bool is_offloaded = false;  // GPUs computed at least a part of C
  std::string
      offload_obstacle;  // why the host computed a part of C that was planned for GPUs; "": it did not
};
// Returns a summary of the report of the handle's last execution.
ExecutionSummary summary_of(kintsugi_handle handle);

}  // namespace kintsugi::drop_in
