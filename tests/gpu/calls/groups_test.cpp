// Tests kintsugi_gemm_grouped on matrices in device memory: products of different shapes, computed by one
// launch, have the bits of single calls.
#include <gmock/gmock.h>

#include <memory>
#include <random>

#include "gpu/calls/device_gemm.hpp"

namespace kintsugi::test {
namespace {

GemmCase drawn_group(std::mt19937_64& random, bool is_large) {
  GemmCase test = random_shape(random, is_large ? 700 : 200, is_large ? 700 : 200, is_large ? 3000 : 400);
  constexpr const char* distributions[] = {"uniform", "phi:2", "phi:8"};
  test.distribution = distributions[below(random, std::size(distributions))];
  test.batch = below(random, 4) == 0 ? 3 : 1;
  test.alpha = below(random, 4) == 0 ? -1.5 : below(random, 8) == 0 ? 0 : 1;
  test.beta = below(random, 3) == 0 ? 0.75 : 0;
  test.scheme = "bf16x6-direct";
  test.engine = "cuda";
  return test;
}

// Groups of a call, with their data.
struct Groups {
  std::vector<std::unique_ptr<GemmDataOf<float>>> data;
  std::vector<std::unique_ptr<DeviceGemm<float>>> on_device;
  std::vector<kintsugi_problem> problems;
  std::vector<kintsugi_operands> operands;

  void add(const GemmCase& test, const DeviceRun& run) {
    data.push_back(std::make_unique<GemmDataOf<float>>(test));
    on_device.push_back(std::make_unique<DeviceGemm<float>>(*data.back(), run));
    problems.push_back(on_device.back()->problem());
    operands.push_back(on_device.back()->operands());
  }
  kintsugi_status run(kintsugi_handle handle) const {
    const kintsugi_options options = on_device.front()->options();
    return kintsugi_gemm_grouped(handle, static_cast<std::int64_t>(problems.size()), problems.data(),
                                 &options, operands.data());
  }
};

class DeviceGroups : public testing::Test {
  void SetUp() override {
    GemmDataOf<float> data({.scheme = "bf16x6-direct", .engine = "cuda"});
    if (DeviceGemm<float>(data).run() == KINTSUGI_NOT_SUPPORTED) GTEST_SKIP() << kintsugi_last_error();
  }
};

TEST_F(DeviceGroups, HaveTheBitsOfSingleCalls) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int shared = 0;
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    const std::int64_t count = 2 + below(random, i % 3 == 0 ? 70 : 6);
    Groups groups;
    std::int64_t items = 0, recomputed = 0;
    for (std::int64_t g = 0; g < count; ++g) {
      const GemmCase test = drawn_group(random, count < 8);
      groups.add(test,
                 {.offset = static_cast<std::size_t>(below(random, 3)), .pointers = below(random, 2) == 0});
      items += test.alpha != 0 ? test.batch : 0;
    }
    const Handle handle;
    ASSERT_EQ(groups.run(handle), KINTSUGI_SUCCESS) << kintsugi_last_error();
    const json report = handle.report();
    for (std::size_t g = 0; g < groups.data.size(); ++g) {
      SCOPED_TRACE("group " + std::to_string(g) + ": " + describe(groups.data[g]->test()));
      groups.on_device[g]->fetch();
      GemmDataOf<float> alone(groups.data[g]->test());
      const Handle single;
      DeviceGemm<float>(alone).run_well(single);
      ASSERT_EQ(bits_of(groups.data[g]->result()), bits_of(alone.result()));
      recomputed += single.report()["recomputed_elements"].get<std::int64_t>();
    }
    // The report is that of the launch, if there was one.
    const json candidates = report["candidates"];
    if (candidates.empty() || candidates.at(0)["items"] != items) continue;
    EXPECT_EQ(report["recomputed_elements"], recomputed);
    ++shared;
  }
  EXPECT_GT(shared, 10);
}

}  // namespace
}  // namespace kintsugi::test
