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

// All that a plan depends on, but for the settings file, which is read once. The queue is not among it: no
// plan depends on one, so that none outlives its stream here; whoever executes a plan names the queue.
struct PlanKey {
  Problem problem;
  Allocator allocator;
  PlanSurroundings surroundings;
  std::string settings;     // of the call and the handle, as a text that differs where these do
  std::string environment;  // append_environment()

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// At most `max_plans`, of which the one that was not asked for the longest goes first. Any number of threads
// may use it, and a forked child goes on with what its parent had: its key says which of both made a plan.
class PlanCache {
 public:
  // A plan has 5 to 12 KB.
  static constexpr std::size_t max_plans = 1024;

  // nullptr: there is none.
  std::shared_ptr<const Plan> find(const PlanKey& key);
  // In place of one with that key.
  void keep(const PlanKey& key, const std::shared_ptr<const Plan>& plan);
  void clear();
  std::size_t size() const;

 private:
  struct Element {
    PlanKey key;
    std::shared_ptr<const Plan> plan;
  };
  using Place = std::list<Element>::iterator;

  Place find_place(const PlanKey& key, std::size_t hash);
  void forget(Place place, std::list<Element>& gone);

  std::list<Element> plans_;                            // the one that was asked for last is the first
  std::unordered_multimap<std::size_t, Place> places_;  // by the key's hash
};

// That of the process, which is never destroyed: another library's destructor may multiply.
PlanCache& plan_cache();

}  // namespace kintsugi::core
