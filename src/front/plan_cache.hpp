// Plans of earlier calls: a call for the same problem under the same options takes the plan that is there.
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

// Everything that a plan depends on except the settings file, which is read once. Plans do not depend on the
// queue, which the execution names, so a kept plan cannot outlive its stream.
struct PlanKey {
  Problem problem;
  Allocator allocator;
  PlanSurroundings surroundings;
  std::string settings;     // text that differs if settings of the call or the handle differ
  std::string environment;  // append_environment()

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// Keeps at most `max_plans` plans and drops the least recently used. Thread-safe. A forked child keeps its
// parent's plans; keys contain the fork depth, so it does not use them.
class PlanCache {
 public:
  // A plan has 5 to 12 KB.
  static constexpr std::size_t max_plans = 1024;

  // Returns the plan of that key, or nullptr.
  std::shared_ptr<const Plan> find(const PlanKey& key);
  // Keeps a plan, in place of one with that key.
  void keep(const PlanKey& key, const std::shared_ptr<const Plan>& plan);
  void clear();
  std::size_t size() const;

 private:
  struct Element {
    PlanKey key;
    std::shared_ptr<const Plan> plan;
  };
  using Position = std::list<Element>::iterator;

  Position find_position(const PlanKey& key, std::size_t hash);
  void remove(Position position, std::list<Element>& removed);

  std::list<Element> plans_;                                  // the one that was asked for last is the first
  std::unordered_multimap<std::size_t, Position> positions_;  // key: the hash of the PlanKey
};

// Plan cache of the process. Never destroyed, since another library's destructor may multiply.
PlanCache& plan_cache();

}  // namespace kintsugi::core
