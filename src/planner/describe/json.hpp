// Parts that descriptions of plans, reports and registries share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/plan.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

using Json = nlohmann::ordered_json;

// The keys that every document begins with; readers refuse a format_version that they do not know.
Json json_document(const char* format, int format_version = 1);

// Names of files need not be UTF-8: bytes that are not are replaced.
std::string text_of(const Json& json);

Json split_json(const SplitRule& rule);
// `name`: with the parameters that make the program of the scheme's own.
Json scheme_json(const Scheme& scheme, const std::string& name, const Program& program);
Json candidate_json(const Candidate& candidate);

// Inside the windows of both splits, and for any operands that overflow nothing.
void add_bounds(Json& json, const Program& program, Accumulator accumulator, std::int64_t k);

}  // namespace kintsugi::core
