// JSON documents that describe plans, reports and the registries of schemes, engines and settings; their
// schemas are in docs/schema/.
#pragma once

#include <string>

#include "base/settings.hpp"
#include "execute/report.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

std::string describe_plan(const Plan& plan);

// Names of a plan's candidates, cheapest first, and the sentence of its description on why it has them.
struct PlanWords {
  std::string candidates;
  std::string reason;
};
PlanWords words_of(const Plan& plan);

// Problem and settings of a plan's description, from which the plan can be made again. Reading fails with
// invalid_argument if the text is no description of a plan in a known format version.
struct PlanDescription {
  Problem problem;  // as in the description, unchecked
  SettingLayer settings;
};
PlanDescription read_plan_description(const std::string& text);

std::string describe_report(const Report& report);
// Returns the name of the first candidate that multiplied a batch item; "": nothing was multiplied.
std::string multiplied_by(const Report& report);
std::string describe_schemes();
std::string describe_engines();
std::string describe_settings(const Settings& settings);

}  // namespace kintsugi::core
