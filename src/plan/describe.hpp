// JSON documents that describe plans, executions and registries; their schemas are in docs/schema/.
#pragma once

#include <string>

#include "base/settings.hpp"
#include "plan/execute.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

std::string describe_plan(const Plan& plan);
std::string describe_report(const Report& report);
std::string describe_schemes();
std::string describe_engines();
std::string describe_settings(const Settings& settings);

// What a plan's description says of its problem and settings, for reading it back. Fails with
// invalid_argument when the text is not such a description of a known major version.
struct PlanDescription {
  Problem problem;  // as written there: not checked yet
  SettingLayer settings;
};
PlanDescription read_plan_description(const std::string& text);

}  // namespace kintsugi::core
