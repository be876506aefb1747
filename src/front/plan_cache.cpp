#include "front/plan_cache.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/fork.hpp"

namespace kintsugi::core {

namespace {

// Hash of the fields that usually differ within one program; equality of keys decides.
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

PlanCache::Place PlanCache::find_place(const PlanKey& key, std::size_t hash) {
  const auto [first, last] = places_.equal_range(hash);
  const auto found = std::find_if(first, last, [&](const auto& place) { return place.second->key == key; });
  return found == last ? plans_.end() : found->second;
}

// The lock is the one that a fork waits for, so that a child finds the lists whole.
std::shared_ptr<const Plan> PlanCache::find(const PlanKey& key) {
  const auto lock = lock_shared_state();
  if (!plans_.empty() && plans_.front().key == key) return plans_.front().plan;
  const Place found = find_place(key, hash_of(key));
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);
  return found->plan;
}

void PlanCache::forget(Place place, std::list<Element>& gone) {
  const auto [first, last] = places_.equal_range(hash_of(place->key));
  places_.erase(std::find_if(first, last, [&](const auto& other) { return other.second == place; }));
  gone.splice(gone.end(), plans_, place);
}

void PlanCache::keep(const PlanKey& key, const std::shared_ptr<const Plan>& plan) {
  std::list<Element> element;
  element.push_back({key, plan});
  std::list<Element> gone;  // is destroyed after the lock
  const std::size_t hash = hash_of(key);
  const auto lock = lock_shared_state();
  if (const Place before = find_place(key, hash); before != plans_.end()) forget(before, gone);
  if (plans_.size() == max_plans) forget(std::prev(plans_.end()), gone);
  places_.emplace(hash, element.begin());
  plans_.splice(plans_.begin(), element);
}

void PlanCache::clear() {
  std::list<Element> gone;
  const auto lock = lock_shared_state();
  places_.clear();
  plans_.swap(gone);
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
