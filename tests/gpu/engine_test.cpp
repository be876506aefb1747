// The engine's own memory and queue.
#include <gtest/gtest-spi.h>

#include "gpu/device_memory.hpp"

namespace kintsugi::test {
namespace {

TEST(DeviceMemory, ComesBackAsItWent) {
  const std::vector<float> values{1, 2, 3, 5, 8};
  EXPECT_EQ(DeviceArray<float>(values, 1).host(), values);
}

TEST(DeviceMemory, GuardsAreWatched) {
  static const DeviceArray<float> array(3);  // the macro takes nothing else
  device_engine().clear({}, array.data(), 4 * sizeof(float));
  EXPECT_NONFATAL_FAILURE(array.host(), "was written to");
}

}  // namespace
}  // namespace kintsugi::test
