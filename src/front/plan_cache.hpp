// Keeps the plans of earlier calls for calls with the same problem and the same options.
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

// Everything that a plan depends on, except for the settings file, which is read only once. A plan does not
// depend on the queue of an execution, so a kept plan contains no stream.
struct PlanKey {
  Problem problem;
  Allocator allocator;
  PlanSurroundings surroundings;
  std::string settings;     // text that differs if settings of the call or the handle differ
  std::string environment;  // variables of settings, as append_environment() writes them

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// Keeps at most `max_plans` plans and drops the least recently used one. Thread-safe. A forked child inherits
// the plans of its parent but does not find them, since keys contain the fork depth.
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

  // The caller of find_position() and remove() must hold the lock.
  Position find_position(const PlanKey& key, std::size_t hash);
  void remove(Position position, std::list<Element>& removed);

  std::list<Element> plans_;                                  // the most recently used plan is the first
  std::unordered_multimap<std::size_t, Position> positions_;  // key: the hash of the PlanKey
};

// Plan cache of the process. Never destroyed, since another library's destructor may multiply.
PlanCache& plan_cache();

}  // namespace kintsugi::core
