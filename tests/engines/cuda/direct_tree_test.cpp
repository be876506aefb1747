// Tests how thread blocks that share a tile add up its sums (bf16x6-direct): whatever levels they share and
// in whatever order they come, the sum has the bits of the one chain of the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "arith/direct_arithmetic.hpp"
#include "engines/cuda/gemm/direct_params.hpp"

namespace kintsugi::core::cuda {
namespace {

// The sum of an element with these sums of groups, as the definition has it.
float defined_sum(const std::vector<float>& groups) {
  DirectSum sum;
  for (std::size_t g = 0; g < groups.size(); ++g)
    sum.add_leaf(groups[g], static_cast<std::int64_t>(g + 1) * direct_group, g + 1 == groups.size());
  return sum.total;
}

// Thread blocks of a tile, with one element and its places in memory.
class SharedTile {
 public:
  SharedTile(const DirectTree& tree, int first_running, const std::vector<float>& groups)
      : tree_(tree), first_running_(first_running), groups_(groups),
        counters_(static_cast<std::size_t>(tree.counters())) {}

  // Sum of a thread block's groups, of which it keeps all but the pieces; `block` -1: it has all groups.
  float run(int block) {
    const int first = block < 0 ? 0 : block << tree_.block_bits;
    const int end = block < 0 ? tree_.groups : std::min(tree_.groups, first + (1 << tree_.block_bits));
    float sum = 0;
    float segment = 0;  // kept by the thread block if its places are for sections and all of k
    for (int g = first; g < end; ++g) {
      sum = groups_[static_cast<std::size_t>(g)];
      const bool ends_k = g + 1 == tree_.groups;
      const auto add = [&](int place) { sum += at(place); };
      const auto store = [&](int place) { places_[place] = sum; };
      if (first_running_ == 1 || tree_.level == 0) {
        tree_.end_sum(block, 0, g, ends_k, first_running_, add, store);
        continue;
      }
      const int child = g % (1 << level_bits);
      if (child != 0) sum += segment;
      segment = sum;
      if (child + 1 == 1 << level_bits || ends_k)
        tree_.end_sum(block, 1, g >> level_bits, ends_k, first_running_, add, store);
    }
    return sum;
  }

  // True if the thread block has the tile's sum.
  bool meet(int block, float& sum) {
    return tree_.meet(
        block,
        [&](int counter, int arrivals) {
          return ++counters_.at(static_cast<std::size_t>(counter)) == arrivals;
        },
        [&](int place, int step, int count) {
          sum = 0;
          for (int c = 0; c < count; ++c) sum += at(place + c * step);
        },
        [&](int place) { places_[place] = sum; });
  }

  int highest_place() const { return places_.empty() ? -1 : places_.rbegin()->first; }

 private:
  float at(int place) const {
    EXPECT_TRUE(places_.contains(place)) << place;
    return places_.contains(place) ? places_.at(place) : 0;
  }

  DirectTree tree_;
  int first_running_;
  const std::vector<float>& groups_;
  std::vector<int> counters_;
  std::map<int, float> places_;
};

std::vector<float> drawn_groups(std::mt19937_64& random, int count) {
  std::vector<float> groups(static_cast<std::size_t>(count));
  std::uniform_real_distribution<float> distribution(-1, 1);
  for (float& x : groups) x = distribution(random);
  return groups;
}

int drawn_count(std::mt19937_64& random) {
  const int most = std::array{4, 32, 33, 200, 1025, 5000, 40'000}[random() % 7];
  return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
}

TEST(DirectTree, ThreadBlocksInAnyOrderHaveTheSumOfOneChain) {
  std::mt19937_64 random(1);
  for (int draw = 0; draw < 400; ++draw) {
    const std::vector<float> groups = drawn_groups(random, drawn_count(random) + 1);
    const int count = static_cast<int>(groups.size());
    DirectTree tree{.groups = count};
    do tree.block_bits = static_cast<int>(random() % 17);
    while (1 << tree.block_bits >= count);
    tree.level = std::min(tree.block_bits / level_bits, last_level - 1);
    const int first_running = 1 + static_cast<int>(random() % 2);
    const int blocks = ((count - 1) >> tree.block_bits) + 1;
    SCOPED_TRACE(testing::Message() << count << " groups, " << blocks << " thread blocks, level "
                                    << tree.level);
    std::vector<int> order(static_cast<std::size_t>(blocks));
    for (int b = 0; b < blocks; ++b) order[static_cast<std::size_t>(b)] = b;
    std::shuffle(order.begin(), order.end(), random);
    SharedTile tile(tree, first_running, groups);
    for (const int block : order) tile.run(block);
    EXPECT_LT(tile.highest_place(), tree.pieces() + blocks * std::max(tree.level - first_running, 0));
    int ends = 0;
    for (const int block : order) {
      float sum = 0;
      if (!tile.meet(block, sum)) continue;
      ++ends;
      EXPECT_EQ(sum, defined_sum(groups));
    }
    ASSERT_EQ(ends, 1);
  }
}

TEST(DirectTree, AThreadBlockWithAllGroupsHasTheSumOfOneChain) {
  std::mt19937_64 random(2);
  for (int draw = 0; draw < 200; ++draw) {
    const std::vector<float> groups = drawn_groups(random, drawn_count(random));
    DirectTree tree{.groups = static_cast<int>(groups.size())};
    tree.level = level_of_all(tree.groups);
    const int first_running = 1 + static_cast<int>(random() % 2);
    SharedTile tile(tree, first_running, groups);
    EXPECT_EQ(tile.run(-1), defined_sum(groups)) << groups.size();
    EXPECT_LE(tile.highest_place(), std::max(tree.level - first_running, -1));
  }
}

// k of 2^31 - 1: all places and counters of a level.
TEST(DirectTree, LongestSumsFitTheirLevels) {
  constexpr int groups = 1 << 22;
  EXPECT_EQ(level_of_all(groups), last_level);
  EXPECT_EQ(sums_of_level(groups, 1), 1 << 17);
  EXPECT_EQ(sums_of_level(groups, 2), 1 << 12);
  const DirectTree tree{.groups = groups, .level = 1, .block_bits = 7};
  EXPECT_EQ(tree.pieces(), 1 << 17);
  EXPECT_EQ(tree.counters(), 1 + (1 << 12));
  EXPECT_EQ(tree.node(2, groups - 1).begin, groups - 1024);
  EXPECT_EQ(tree.counter(2, tree.node(2, groups - 1)), 1 << 12);
  EXPECT_EQ(tree.arrivals(2, tree.node(2, 0)), 8);
  EXPECT_EQ(tree.arrivals(last_level, tree.node(last_level, 0)), 1 << 12);
}

}  // namespace
}  // namespace kintsugi::core::cuda
