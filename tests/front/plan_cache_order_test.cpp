// Tests which plans the cache keeps, also with several threads at once.
#include "front/plan_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace kintsugi::core {
namespace {

PlanKey key_of(std::int64_t number) {
  PlanKey key;
  key.problem.m = number;
  return key;
}

std::shared_ptr<const Plan> numbered_plan(int number) {
  Plan plan;
  plan.threads = number;
  return std::make_shared<const Plan>(plan);
}

TEST(PlanCacheOrder, TheLeastRecentlyUsedPlanIsRemoved) {
  constexpr int max_plans = static_cast<int>(PlanCache::max_plans);
  ASSERT_GE(max_plans, 512);
  PlanCache cache;
  for (int number = 0; number < max_plans; ++number) cache.keep(key_of(number), numbered_plan(number));
  EXPECT_EQ(cache.size(), PlanCache::max_plans);
  ASSERT_NE(cache.find(key_of(0)), nullptr);
  cache.keep(key_of(max_plans), numbered_plan(max_plans));
  EXPECT_EQ(cache.size(), PlanCache::max_plans);
  EXPECT_EQ(cache.find(key_of(1)), nullptr);
  EXPECT_EQ(cache.find(key_of(0))->threads, 0);
  EXPECT_EQ(cache.find(key_of(max_plans))->threads, max_plans);
  cache.keep(key_of(0), numbered_plan(7));
  EXPECT_EQ(cache.size(), PlanCache::max_plans);
  EXPECT_EQ(cache.find(key_of(0))->threads, 7);
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.find(key_of(0)), nullptr);
}

TEST(PlanCacheOrder, EightThreadsGetTheirOwnPlans) {
  PlanCache cache;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int step = 0; step < 4000; ++step) {
        const int number = static_cast<int>(random() % 1500);
        const auto plan = cache.find(key_of(number));
        if (plan != nullptr && plan->threads != number) ++wrong;
        if (plan == nullptr) cache.keep(key_of(number), numbered_plan(number));
        if (step % 1000 == 999) cache.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.size(), PlanCache::max_plans);
}

}  // namespace
}  // namespace kintsugi::core
