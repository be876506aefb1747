// Descriptions and reports name the state of the matrix unit by which their plan was decided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/settings.hpp"
#include "engines/cpu/products.hpp"
#include "execute/report.hpp"
#include "front/describe.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::shared_ptr<Plan> small_plan() {
  const Problem problem{.m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8, .type = OperandType::f64};
  return std::make_shared<Plan>(make_plan(problem, Settings({}, {}, {}, {}), {}));
}

struct Named {
  MatrixUnitState state;
  const char* name;
  const char* source;
  const char* words;
};

TEST(MatrixUnit, DescriptionsAndReportsNameItsState) {
  for (const Named& expected :
       {Named{MatrixUnitState::fast, "fast", "measured", "measured in its fast state"},
        Named{MatrixUnitState::slow, "slow", "measured", "measured in its slow state"},
        Named{MatrixUnitState::set_fast, "fast", "setting", "counts as fast by the setting cpu_amx"},
        Named{MatrixUnitState::set_slow, "slow", "setting", "counts as slow by the setting cpu_amx"},
        Named{MatrixUnitState::unknown, "unknown", "not measured",
              "not measured, because several threads"}}) {
    const std::shared_ptr<Plan> plan = small_plan();
    plan->unit = expected.state;
    const Json description = Json::parse(describe_plan(*plan));
    const Json unit{{"state", expected.name}, {"source", expected.source}};
    EXPECT_EQ(description.at("matrix_unit"), unit);
    // The sentence on the decision, the first that is no warning.
    std::size_t decision = 1;
    while (description.at("words").at(decision).get<std::string>().starts_with("Warning")) ++decision;
    EXPECT_THAT(description.at("words").at(decision).get<std::string>(), HasSubstr(expected.words));
    Report report;
    report.plan = plan;
    EXPECT_EQ(Json::parse(describe_report(report)).at("matrix_unit"), unit);
  }
}

TEST(MatrixUnit, OtherUnitsHaveNoState) {
  const std::shared_ptr<Plan> plan = small_plan();
  plan->unit = MatrixUnitState::steady;
  const std::string description = describe_plan(*plan);
  EXPECT_TRUE(Json::parse(description).at("matrix_unit").is_null());
  EXPECT_EQ(description.find("AMX"), std::string::npos);
  EXPECT_TRUE(Json::parse(describe_report(Report{})).at("matrix_unit").is_null());
}

TEST(MatrixUnit, AmxAloneHasAState) {
  const bool is_amx = std::string_view(int8_choice().kernels->name) == "amx";
  EXPECT_EQ(amx_state(1) != MatrixUnitState::steady, is_amx);
  EXPECT_EQ(amx_state(2) != MatrixUnitState::steady, is_amx);
}

}  // namespace
}  // namespace kintsugi::core
