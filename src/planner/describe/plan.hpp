// JSON documents that describe plans; their schema is docs/schema/plan.schema.json.
#pragma once

#include <string>

#include "base/settings.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

std::string describe_plan(const Plan& plan);

// What a plan's description says of its problem and settings, for reading it back. Fails with
// invalid_argument when the text is not such a description of a known major version.
struct PlanDescription {
  Problem problem;  // as written there: not checked yet
  SettingLayer settings;
};
PlanDescription read_plan_description(const std::string& text);

}  // namespace kintsugi::core
