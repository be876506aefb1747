// The library's plans for the problem that is explained: what would be chosen.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "accuracy/methods.hpp"

namespace kintsugi::tools {

std::string binades(int span);  // "1 binade", "2 binades"

// A program of a fallback chain, and the widest span that it takes.
struct ChainCandidate {
  std::string scheme;
  std::optional<int> dynamic_range;  // nothing: any
  int products = 0;                  // of slices; 0: native
  bool by_norms = false;             // taken where norms prove all elements, which depends on more than spans
  bool checked = false;              // element by element
  bool fixed_order = true;           // additions; false: the vendor library's

  bool takes(int span) const { return !dynamic_range || *dynamic_range >= span; }
};

// What a policy does with operands of a span.
struct Choice {
  std::string policy;
  std::string engine;  // "" where there is no plan
  std::vector<ChainCandidate> candidates;
  std::optional<std::size_t> taken;  // a candidate; nothing where none does
  std::string reason;
  std::string named;  // the scheme that the settings name: then there is no fallback chain

  const ChainCandidate* chosen() const { return taken ? &candidates[*taken] : nullptr; }
  bool checked() const {
    return std::any_of(candidates.begin(), candidates.end(),
                       [](const ChainCandidate& candidate) { return candidate.checked; });
  }
};
Choice choose(const kintsugi_problem& problem, const std::string& policy, const std::string& accuracy,
              const std::string& engine, int span);

// The accuracy in force and what it allows, as a coefficient of |A||B|.
struct Contract {
  std::string accuracy;
  double coefficient = 0;
};
Contract contract_of(const std::string& accuracy, Type type, std::int64_t k);

Json choice_document(const Choice& choice);

}  // namespace kintsugi::tools
