#include "front/plan_cache.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/threads.hpp"

namespace kintsugi::core {

namespace {

// Returns a hash of the members that usually differ within one program. Equality of keys is tested
// afterwards.
std::size_t hash_of(const PlanKey& key) {
  const Problem& p = key.problem;
  std::uint64_t hash =
      std::hash<std::string_view>{}(key.settings) + std::hash<std::string_view>{}(key.environment);
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (const std::int64_t value :
       {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.batch_count, p.stride_a, p.stride_b, p.stride_c})
    mix(static_cast<std::uint64_t>(value));
  mix(static_cast<std::uint64_t>(p.op_a) * 4 + static_cast<std::uint64_t>(p.op_b));
  mix(static_cast<std::uint64_t>(p.type) * 2 + (p.complex ? 1 : 0));
  mix(key.surroundings.context.id);
  return hash;
}

}  // namespace

PlanCache::Position PlanCache::find_position(const PlanKey& key, std::size_t hash) {
  const auto [first, last] = positions_.equal_range(hash);
  const auto found =
      std::find_if(first, last, [&](const auto& position) { return position.second->key == key; });
  return found == last ? plans_.end() : found->second;
}

// A fork() waits for the lock of lock_shared_state(), so that the lists are consistent in the child.
std::shared_ptr<const Plan> PlanCache::find(const PlanKey& key) {
  const auto lock = lock_shared_state();
  if (!plans_.empty() && plans_.front().key == key) return plans_.front().plan;
  const Position found = find_position(key, hash_of(key));
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);
  return found->plan;
}

void PlanCache::remove(Position position, std::list<Element>& removed) {
  const auto [first, last] = positions_.equal_range(hash_of(position->key));
  positions_.erase(std::find_if(first, last, [&](const auto& other) { return other.second == position; }));
  removed.splice(removed.end(), plans_, position);
}

void PlanCache::keep(const PlanKey& key, const std::shared_ptr<const Plan>& plan) {
  std::list<Element> element;
  element.push_back({key, plan});
  std::list<Element> removed;  // declared before the lock, so that plans are destroyed after it is released
  const std::size_t hash = hash_of(key);
  const auto lock = lock_shared_state();
  if (const Position older = find_position(key, hash); older != plans_.end()) remove(older, removed);
  if (plans_.size() == max_plans) remove(std::prev(plans_.end()), removed);
  positions_.emplace(hash, element.begin());
  plans_.splice(plans_.begin(), element);
}

void PlanCache::clear() {
  std::list<Element> removed;
  const auto lock = lock_shared_state();
  positions_.clear();
  plans_.swap(removed);
}

std::size_t PlanCache::size() const {
  const auto lock = lock_shared_state();
  return plans_.size();
}

PlanCache& plan_cache() {
  static constinit MadeOnce cache(+[] { return new PlanCache; });
  return *cache.get();
}

}  // namespace kintsugi::core
