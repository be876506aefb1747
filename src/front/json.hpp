// Parts of the JSON documents that describe plans, reports and registries.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/plan.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

using Json = nlohmann::ordered_json;

// Returns a document with the members that every document has. Readers refuse an unknown format_version.
Json json_document(const char* format, int format_version = 1);

// Returns the document as text. Bytes that are no UTF-8, as file names may contain, are replaced.
std::string text_of(const Json& json);

Json split_json(const SplitRule& rule);
// Describes a scheme with this program. `name`: the scheme's name with the parameters of the program.
Json scheme_json(const Scheme& scheme, const std::string& name, const Program& program);
Json candidate_json(const Candidate& candidate);
// State of the matrix unit by which a plan was decided; null if its rate does not vary.
Json matrix_unit_json(MatrixUnitState state);

// Adds two error bounds of the program: one for operands inside the windows of both splits, and one for all
// operands that do not overflow.
void add_bounds(Json& json, const Program& program, Accumulator accumulator, std::int64_t k);

}  // namespace kintsugi::core
