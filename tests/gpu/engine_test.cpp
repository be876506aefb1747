// Tests copies to and from device memory, and its guards.
#include <gtest/gtest-spi.h>

#include "gpu/device_memory.hpp"

namespace kintsugi::test {
namespace {

TEST(DeviceMemory, KeepsUploadedValues) {
  const std::vector<float> values{1, 2, 3, 5, 8};
  EXPECT_EQ(DeviceArray<float>(values, 1).host(), values);
}

TEST(DeviceMemory, HostFailsIfAGuardWasWritten) {
  static const DeviceArray<float> array(3);  // static, since EXPECT_NONFATAL_FAILURE cannot use locals
  core::cuda::clear({}, array.data(), 4 * sizeof(float));
  EXPECT_NONFATAL_FAILURE(array.host(), "was written to");
}

}  // namespace
}  // namespace kintsugi::test
