// Tests copies past the caches: every byte of the target, and none beside it, at random places and lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/memory.hpp"

namespace kintsugi::test {
namespace {

TEST(StreamingCopy, WritesEveryByteAndNoOther) {
  std::mt19937_64 random(3);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  std::vector<std::byte> source(5000);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  for (int copy = 0; copy < 2000; ++copy) {
    const std::size_t length = below(copy % 2 == 0 ? 200 : 4000);
    const std::size_t from = below(700);
    const std::size_t to = below(700);
    std::vector<std::byte> target(5000, std::byte{0x5a});
    std::vector<std::byte> expected = target;
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), length,
                expected.begin() + static_cast<std::ptrdiff_t>(to));
    core::streaming_copy(target.data() + to, source.data() + from, length);
    ASSERT_EQ(target, expected) << length << " bytes from " << from << " to " << to;
  }
}

}  // namespace
}  // namespace kintsugi::test
