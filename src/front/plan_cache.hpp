// Plans of earlier calls. A call for the same problem under the same options takes the plan from here.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/memory.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Everything that a plan depends on except the settings file, which is read once. A plan does not depend on
// the queue, which each execution names, so a kept plan has no stream that could be destroyed before it.
struct PlanKey {
  Problem problem;
  Allocator allocator;
  PlanSurroundings surroundings;
  std::string settings;     // text that differs if settings of the call or the handle differ
  std::string environment;  // variables of settings, as append_environment() writes them

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// Keeps at most `max_plans` plans and drops the least recently used. Thread-safe. A forked child has its
// parent's plans in the cache but does not use them, since keys contain the fork depth.
class PlanCache {
 public:
  // A plan takes 5 to 12 KB of memory.
  static constexpr std::size_t max_plans = 1024;

  // Returns the plan of that key, or nullptr.
  std::shared_ptr<const Plan> find(const PlanKey& key);
  // Keeps the plan under the key, and drops an older plan that has the key.
  void keep(const PlanKey& key, const std::shared_ptr<const Plan>& plan);
  void clear();
  std::size_t size() const;

 private:
  struct Element {
    PlanKey key;
    std::shared_ptr<const Plan> plan;
  };
  using Position = std::list<Element>::iterator;

  // Precondition of both: the lock is held.
  Position find_position(const PlanKey& key, std::size_t hash);
  void remove(Position position, std::list<Element>& removed);

  std::list<Element> plans_;                                  // the most recently used plan is the first
  std::unordered_multimap<std::size_t, Position> positions_;  // key: the hash of the PlanKey
};

// Plan cache of the process. Never destroyed, since another library's destructor may multiply.
PlanCache& plan_cache();

}  // namespace kintsugi::core
