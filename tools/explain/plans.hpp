// The library's plans for the explained problem, and which candidates they select.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"

namespace kintsugi::tools {

std::string binades_text(int binades);  // "1 binade", "2 binades"

// A program of a fallback chain, and the operands that it accepts.
struct ChainCandidate {
  std::string scheme;
  std::optional<int> largest_dynamic_range;  // nothing: any dynamic range is accepted
  int products = 0;                          // products of slices; 0: native
  bool by_norms = false;    // true: accepted only if the norms of all vectors prove the accuracy
  bool checked = false;     // true: every element is checked
  bool fixed_order = true;  // false: the vendor library decides the order of additions

  bool accepts(int dynamic_range) const {
    return !largest_dynamic_range || *largest_dynamic_range >= dynamic_range;
  }
};

// The candidate that a policy selects for operands of a dynamic range.
struct Choice {
  std::string policy;
  std::string engine;  // "" if there is no plan
  std::vector<ChainCandidate> candidates;
  std::optional<std::size_t> selected;  // index of a candidate; nothing if none accepts the operands
  std::string reason;
  std::string named_scheme;  // scheme that the settings name; there is no fallback chain then; "": none

  const ChainCandidate* selected_candidate() const { return selected ? &candidates[*selected] : nullptr; }
  // True if some candidate is a checked one.
  bool has_checked() const {
    return std::any_of(candidates.begin(), candidates.end(),
                       [](const ChainCandidate& candidate) { return candidate.checked; });
  }
};
Choice choose(const kintsugi_problem& problem, const std::string& policy, const std::string& accuracy,
              const std::string& engine, int dynamic_range);

// The accuracy of the call and the coefficient of |A||B| that it allows.
struct Contract {
  std::string accuracy;
  double coefficient = 0;
};
// Returns the contract of the accuracy. If `accuracy` is "", the settings decide, or else the type.
Contract contract_of(const std::string& accuracy, Type type, std::int64_t k);

Json choice_document(const Choice& choice);

}  // namespace kintsugi::tools
