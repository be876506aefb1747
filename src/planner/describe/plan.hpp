// JSON documents that describe plans; their schema is docs/schema/plan.schema.json.
#pragma once

#include <string>

#include "base/settings.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

std::string describe_plan(const Plan& plan);

// Problem and settings of a plan's description, from which the plan can be made again. Reading fails with
// invalid_argument if the text is no description of a plan in a known format version.
struct PlanDescription {
  Problem problem;  // as in the description, unchecked
  SettingLayer settings;
};
PlanDescription read_plan_description(const std::string& text);

}  // namespace kintsugi::core
