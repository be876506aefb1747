// What an execution did, and its description.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "execute/ozaki1_counts.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// What an execution did. Of fixed size: a call with a workspace allocates nothing.
struct Report {
  const Engine* engine = nullptr;
  Blocking blocking;
  std::size_t workspace_bytes = 0;
  std::array<Candidate, Plan::most_candidates> candidates;
  std::array<std::int64_t, Plan::most_candidates> items{};  // batch items that each candidate multiplied
  std::int64_t items_scaled = 0;                            // beta * C alone: alpha = 0 or k = 0
  std::int64_t items_with_special_values = 0;               // NaN or infinities in A or B
  // Elements of C that the first checked candidate did not show to meet the contract: correctly rounded by
  // wider ones. Of native products elements that were computed again (execute/host/native.hpp); engines do
  // not count those of double-double products.
  std::int64_t recomputed_elements = 0;
  // Batch items whose operands the named program does not take, which only the device knew: C is NaN there.
  std::int64_t items_unreachable = 0;
  bool ranges_known = false;  // a native plan does not look at them
  int dynamic_range_a = 0;    // over all items whose ranges were found
  int dynamic_range_b = 0;

  // The last item whose operands changed the program that was planned; no scheme: there was none.
  struct Adapted {
    const Scheme* scheme = nullptr;
    Accumulator accumulator = Accumulator::fp32;
    std::int64_t k = 0;
    Program program{};
    SchemeParameters parameters{};  // of the scheme, where the plan set them
  } adapted;
  // `program` is what the operands made of the candidate's.
  void set_adapted(const Candidate& candidate, const Program& program, std::int64_t k) {
    adapted = {candidate.scheme, candidate.accumulator, k, program, candidate.parameters};
  }

  Ozaki1Counts error_free;  // of items under Recombination::error_free
};

// A JSON document; its schema is docs/schema/report.schema.json.
std::string describe_report(const Report& report);

}  // namespace kintsugi::core
