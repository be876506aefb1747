// Summaries of plans and executions say what the descriptions say.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/c_objects.hpp"

namespace kintsugi::test {
namespace {

kintsugi_plan_summary summary_of(kintsugi_plan plan) {
  kintsugi_plan_summary summary = KINTSUGI_PLAN_SUMMARY_INIT;
  EXPECT_EQ(kintsugi_plan_summarize(plan, &summary), KINTSUGI_SUCCESS) << kintsugi_last_error();
  return summary;
}

kintsugi_report_summary summary_of(const Handle& handle) {
  kintsugi_report_summary summary = KINTSUGI_REPORT_SUMMARY_INIT;
  EXPECT_EQ(kintsugi_report_summarize(handle, &summary), KINTSUGI_SUCCESS) << kintsugi_last_error();
  return summary;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

TEST(Summary, OfAPlanSaysWhatItsDescriptionSays) {
  for (const char* policy : {"auto", "emulate", "native"}) {
    SCOPED_TRACE(policy);
    GemmData data(GemmCase{.m = 9, .n = 8, .k = 7, .engine = "reference", .policy = policy});
    const PlanOf plan(data);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    const json description = plan.describe();
    const std::vector<std::string> names = candidates(description);
    const kintsugi_plan_summary summary = summary_of(plan.plan);
    EXPECT_EQ(summary.candidates, joined(names));
    EXPECT_EQ(summary.is_native, names == std::vector<std::string>{"native"});
    EXPECT_EQ(summary.may_be_native, names.back() == "native");
    EXPECT_EQ(summary.is_offloaded, 0);
    EXPECT_STREQ(summary.offload, "");
    std::size_t decision = 1;  // warnings precede the sentence on the decision
    while (description.at("words").at(decision).get<std::string>().starts_with("Warning")) ++decision;
    EXPECT_EQ(summary.reason, description.at("words").at(decision).get<std::string>());
    EXPECT_EQ(summary_of(plan.plan).reason, summary.reason) << "the texts are made once";
  }
}

TEST(Summary, FillsTheMembersThatTheCallersStructHas) {
  GemmData data(GemmCase{.engine = "reference"});
  const PlanOf plan(data);
  kintsugi_plan_summary summary = KINTSUGI_PLAN_SUMMARY_INIT;
  summary.struct_size = 24;  // without the texts, with which the struct was first published
  EXPECT_EQ(kintsugi_plan_summarize(plan.plan, &summary), KINTSUGI_INVALID_ARGUMENT);
  struct {
    kintsugi_plan_summary known;
    std::int64_t unknown;  // a member of a later version
  } longer{KINTSUGI_PLAN_SUMMARY_INIT, 77};
  longer.known.struct_size = sizeof longer;
  EXPECT_EQ(kintsugi_plan_summarize(plan.plan, &longer.known), KINTSUGI_SUCCESS);
  EXPECT_EQ(longer.known.struct_size, sizeof longer);
  EXPECT_EQ(longer.unknown, 77);
}

TEST(Summary, OfAnExecutionSaysWhatItsReportSays) {
  const Handle handle;
  EXPECT_STREQ(summary_of(handle).scheme, "") << "nothing was executed";
  for (const char* scheme : {"fp16x3", "native"}) {
    SCOPED_TRACE(scheme);
    GemmData data(GemmCase{.m = 9, .n = 8, .k = 7, .scheme = scheme, .engine = "reference"});
    data.a()(0, 0) = std::numeric_limits<float>::quiet_NaN();
    ASSERT_EQ(data.run(handle), KINTSUGI_SUCCESS) << kintsugi_last_error();
    const json report = handle.report();
    const kintsugi_report_summary summary = summary_of(handle);
    EXPECT_STREQ(summary.scheme, scheme);
    EXPECT_EQ(summary.scheme, joined(candidates(report)));
    EXPECT_EQ(summary.recomputed_elements, report.at("recomputed_elements"));
    EXPECT_EQ(summary.items_with_special_values, report.at("items_with_special_values"));
    EXPECT_EQ(summary.offload_devices, 0);
    EXPECT_STREQ(summary.offload_obstacle, "");
  }
  EXPECT_EQ(summary_of(handle).items_with_special_values, 0) << "native products do not look for them";
}

}  // namespace
}  // namespace kintsugi::test
