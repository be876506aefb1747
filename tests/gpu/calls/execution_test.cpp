// Tests calls on device memory: graphs, workspaces, host matrices.
#include <string>

#include "gpu/calls/planned.hpp"

namespace kintsugi::test {
namespace {

TEST(DeviceGraph, ReplaysHaveTheBitsOfTheCallInSmallCases) {
  for (const std::string scheme_or_policy : {"fp16x3", "ozaki2:moduli=7", "emulate", "native"}) {
    for (const bool own_workspace : {true, false}) {
      const bool is_scheme = scheme_or_policy != "emulate" && scheme_or_policy != "native";
      GemmCase test{.m = 130,
                    .n = 70,
                    .k = 300,
                    .beta = 0.5,
                    .scheme = is_scheme ? scheme_or_policy : "",
                    .policy = is_scheme ? "" : scheme_or_policy};
      SCOPED_TRACE(scheme_or_policy);
      const Handle handle;
      const Stream stream;
      GemmDataOf<float> data(test);
      DeviceGemm<float> device(data, {.device_scalars = true, .queue = stream.queue()});
      const Planned planned(device.problem(), device.options(), handle);
      const DeviceArray<unsigned char> workspace(planned.workspace);
      kintsugi_operands operands = device.operands();
      if (own_workspace) {
        operands.workspace = workspace.data();
        operands.workspace_size = planned.workspace;
      }
      const CapturedCall call(stream, handle, planned.plan, operands);
      const auto bits = device_bits<float>(test);
      for (int replay = 0; replay < 3; ++replay) {
        core::cuda::copy_to_device({}, device.c().data(), data.raw_c().data(),
                                   data.raw_c().size() * sizeof(float));
        call.replay();
        GemmDataOf<float> result(test);
        result.raw_c() = device.c().host();
        EXPECT_EQ(bits_of(result.result()), bits) << "replay " << replay;
      }
      if (scheme_or_policy != "native") {
        EXPECT_EQ(handle.report()["candidates"][0]["items"], 1) << handle.report();
      }
    }
  }
}

TEST(DeviceWorkspace, AByteLessThanTheWorkspaceIsRefusedInSmallCases) {
  GemmCase test{.m = 140, .n = 131, .k = 260, .scheme = "bf16x6"};
  const auto bits = device_bits<float>(test);
  GemmDataOf<float> data(test);
  DeviceGemm<float> device(data);
  const Planned planned(device.problem(), device.options());
  const DeviceArray<unsigned char> workspace(planned.workspace);
  kintsugi_operands operands = device.operands();
  operands.workspace = workspace.data();
  operands.workspace_size = planned.workspace - 1;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_WORKSPACE_TOO_SMALL);
  operands.workspace_size = planned.workspace;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  device.fetch();
  workspace.host();  // checks the guards
  EXPECT_EQ(bits_of(data.result()), bits);
}

// Bits of the first of two batch items; in a batch each product clears its own counters.
std::vector<std::uint32_t> first_of_batch(GemmCase test) {
  test.batch = 2;
  std::vector<std::uint32_t> bits = device_bits<float>(test);
  bits.resize(static_cast<std::size_t>(test.m * test.n));
  return bits;
}

// Partial sums of tiles split along k, and of segments of k with their own thread blocks, need counters in
// the workspace. Kernels must clear these whatever the workspace held before: the first split does, if there
// is one.
TEST(DeviceWorkspace, BitsDoNotDependOnItsContents) {
  const GemmCase cases[] = {
      {.m = 5120, .n = 5120, .k = 1280, .scheme = "fp16x3"},
      {.m = 5120, .n = 5120, .k = 1280, .policy = "emulate"},
      {.m = 5120, .n = 5120, .k = 1280, .distribution = "graded-inner:60", .policy = "emulate"},
      {.m = 64, .n = 64, .k = 65536, .scheme = "fp16x3"},
      {.m = 64, .n = 64, .k = 65536, .policy = "emulate"},
      {.m = 200, .n = 3000, .k = 9000, .policy = "emulate"}};
  for (const GemmCase& test : cases) {
    SCOPED_TRACE(describe(test));
    const auto bits = device_bits<float>(test);
    const auto batched = first_of_batch(test);
    std::int64_t differing = 0, first = -1, last = -1;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (bits[i] == batched[i]) continue;
      ++differing;
      if (first < 0) first = static_cast<std::int64_t>(i);
      last = static_cast<std::int64_t>(i);
    }
    EXPECT_EQ(differing, 0) << "elements of a batch item differ, from " << first << " to " << last;
    GemmDataOf<float> data(test);
    DeviceGemm<float> device(data);
    const Planned planned(device.problem(), device.options());
    const DeviceArray<unsigned char> workspace(planned.workspace);
    kintsugi_operands operands = device.operands();
    operands.workspace = workspace.data();
    operands.workspace_size = planned.workspace;
    const PreparedOperands prepared(planned.plan, operands);
    for (const int prepared_sides : {0, 3, 0, 1, 2, 3, 3}) {
      const kintsugi_operands with_prepared = prepared.add_to(operands, prepared_sides);
      ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &with_prepared), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      device.fetch();
      EXPECT_TRUE(bits_of(data.result()) == bits) << "prepared: " << prepared_sides;
    }
  }
}

// The engine cuda is named, and the matrices are in host memory.
TEST(DeviceStaging, HostMatricesAreMultipliedInSmallCases) {
  for (const char* scheme : {"fp16x3", "h2sgemm", "h2sgemm:sb=eq6", "h2sgemm-element", "ozaki2:moduli=7"}) {
    GemmCase test{.m = 65,
                  .n = 33,
                  .k = 130,
                  .op_a = KINTSUGI_OP_T,
                  .layout = KINTSUGI_ROW_MAJOR,
                  .pad_a = 1,
                  .pad_c = 3,
                  .batch = 2,
                  .alpha = 0.5,
                  .beta = 2,
                  .scheme = scheme,
                  .engine = "cuda"};
    SCOPED_TRACE(describe(test));
    GemmDataOf<float> data(test);
    const Handle handle;
    const std::vector<float> before = data.raw_c();
    data.run_well(handle);
    for (const measure::ElementError& element : element_errors(data, before))
      ASSERT_LE(element.error, 0x1p-15 * (element.absolute + 2));
    EXPECT_EQ(handle.report()["candidates"][0]["items"], 2) << handle.report();
  }
}

}  // namespace
}  // namespace kintsugi::test
