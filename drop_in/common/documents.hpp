// The library's JSON documents, as far as the drop-in reads them.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kintsugi::drop_in {

// Returns the values of the library's settings that are in force, by name; nothing if the library refuses a
// setting: kintsugi_last_error() then says why.
std::optional<std::map<std::string, std::string>> library_settings();

struct PlanSummary {
  bool is_native = false;      // no candidate but the native product
  bool may_be_native = false;  // the native product is the last candidate
  bool is_offloaded = false;   // GPUs multiply matrices of the host
  std::string candidates;      // names of the candidates' programs, cheapest first: "fp16x3, bf16x6, native"
  std::string why;             // the library's sentences on the choice
};
PlanSummary summary_of(kintsugi_plan plan);

struct ExecutionSummary {
  std::string program;  // name of the candidate that multiplied; "": at most beta C was formed
  std::int64_t recomputed_elements = 0;
  bool has_special_values = false;
  bool is_offloaded = false;     // GPUs computed C, or a part of it
  std::string offload_obstacle;  // why the host computed C, or a part of it, though the plan offloads; or ""
};
// Returns what the report of the handle's last execution says.
ExecutionSummary summary_of(kintsugi_handle handle);

}  // namespace kintsugi::drop_in
