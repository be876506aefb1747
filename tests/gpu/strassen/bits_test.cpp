// Tests that products by a step of Strassen's algorithm have the bits of products without it.
#include "gpu/calls/planned.hpp"

namespace kintsugi::test {
namespace {

// Returns the workspace of the case's plan if its first candidate takes a step of Strassen's algorithm; 0 if
// not.
template <class T>
std::size_t workspace_by_strassen(const GemmCase& test) {
  GemmDataOf<T> data(test);
  const DeviceGemm<T> device(data);
  const auto problem = device.problem();
  const auto options = device.options();
  const Planned planned(problem, options);
  const auto plan = Handle::text(
      [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(planned.plan, b, c, n); });
  const bool strassen = plan.at("candidates").at(0).at("program").at("schedule").at("strassen");
  return strassen ? planned.workspace : 0;
}

// A workspace that does not hold whole operands is too small for the step, so the second product is made
// without it.
template <class T>
void expect_same_bits(GemmCase test) {
  SCOPED_TRACE(describe(test));
  test.accuracy = "fp64";
  test.policy = "emulate";
  const std::size_t workspace = workspace_by_strassen<T>(test);
  if (workspace == 0) GTEST_SKIP() << "the device's plans take no step of Strassen's algorithm";
  const auto bits = device_bits<T>(test);
  test.workspace_limit = static_cast<std::int64_t>(workspace) - 1;
  EXPECT_EQ(workspace_by_strassen<T>(test), 0U);
  EXPECT_EQ(device_bits<T>(test), bits);
}

TEST(Strassen, HasTheBitsOfProductsWithoutIt) {
  expect_same_bits<double>({.m = 8190, .n = 8201, .k = 8195, .distribution = "phi:0.5"});
  expect_same_bits<double>({.m = 8199,
                            .n = 8186,
                            .k = 8192,
                            .op_a = KINTSUGI_OP_T,
                            .op_b = KINTSUGI_OP_T,
                            .layout = KINTSUGI_ROW_MAJOR,
                            .pad_a = 3,
                            .pad_b = 1,
                            .pad_c = 5,
                            .alpha = -1,
                            .beta = 1});
}

TEST(Strassen, HasTheBitsForOtherScalarsAndLongSums) {
  expect_same_bits<double>({.m = 8200,
                            .n = 8190,
                            .k = 16388,
                            .op_a = KINTSUGI_OP_T,
                            .alpha = 0.7,
                            .beta = 0.3,
                            .distribution = "phi:1"});
}

}  // namespace
}  // namespace kintsugi::test
