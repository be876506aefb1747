#include "explain/verdict.hpp"

#include <algorithm>
#include <string_view>

namespace kintsugi::tools {

namespace {

// Fewest bits of a split with which the accuracy fp32 can be proved. The error of a split to 21 bits exceeds
// 9 * 2^-24, the contract for k = 1, so not even a single product would meet the contract.
constexpr int fewest_bits_of_fp32 = 22;

constexpr std::string_view checked_scheme = "ozaki2";  // the scheme of all checked candidates

constexpr std::size_t max_candidates = 4;  // candidates of a plan's fallback chain

std::string cost_text(int products, int other_products) {
  return fmt::format("{} product{} against {}", products, products == 1 ? "" : "s", other_products);
}

// Returns the verdict on checked_scheme. The checked candidates are variants of this scheme, with numbers of
// moduli that the library selects.
std::string of_checked_scheme(const Choice& choice) {
  std::string candidates;
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.checked) candidates += (candidates.empty() ? "" : ", ") + candidate.scheme;
  }
  return "in the fallback chain, with as many moduli as the accuracy needs: " + candidates;
}

// Returns the verdict on a candidate of the fallback chain that is not selected.
std::string of_unselected_candidate(const ChainCandidate& candidate, const Choice& choice,
                                    int dynamic_range) {
  if (candidate.by_norms)
    return "in the fallback chain: runs if the norms of all vectors prove it before it runs";
  if (!candidate.accepts(dynamic_range))
    return fmt::format("window too narrow: vectors span up to {}, it takes {}", binades_text(dynamic_range),
                       *candidate.largest_dynamic_range);
  if (choice.has_checked())
    return "the fallback chain's last candidate: for elements that fail the checks of all others";
  const ChainCandidate& selected = *choice.selected_candidate();
  return fmt::format("not needed: {} takes vectors of up to {} and {}", selected.scheme,
                     binades_text(dynamic_range),
                     selected.products < candidate.products
                         ? "costs less, " + cost_text(selected.products, candidate.products)
                         : "comes before it");
}

// Returns the verdict on a scheme that is not proved although the operands are inside its window. The reason
// is a sampled element whose bound exceeds the contract, if there is one. Otherwise it is that other operands
// with these dynamic ranges may exceed the contract.
std::string of_unproved_scheme(const SchemeRow& row, const Contract& contract) {
  const double sample_bound = *row.bound->sample_bound;
  if (sample_bound > contract.coefficient)
    return fmt::format("not proved: {:.3g} |A||B| on these data is above the {:.3g} of accuracy {}",
                       sample_bound, contract.coefficient, contract.accuracy);
  return fmt::format(
      "not proved: operands with these dynamic ranges may have errors of {:.3g} |A||B|, though no sampled "
      "element can have more than {:.3g}",
      *row.bound->dynamic_range_bound, sample_bound);
}

std::string with_special_values(std::int64_t special_values) {
  return fmt::format("no bound is stated for operands with NaN or infinities, of which there {} {}",
                     special_values == 1 ? "is" : "are", special_values);
}

// Returns the verdict on a scheme that does not scale vectors. No fallback chain has such a scheme: when a
// plan is made, it is not known whether the operands are in the scheme's window.
std::string without_scales(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  const std::string by_name = "it does not scale rows and columns, so it runs by name alone";
  if (choices.special_values > 0) return with_special_values(choices.special_values) + "; " + by_name;
  if (!*row.in_window)
    return fmt::format("outside its window, elements of 2^{} to 2^{}; {}", row.window.smallest,
                       row.window.largest, by_name);
  if (row.proved) return "proved on these data; but " + by_name;
  return of_unproved_scheme(row, contract);
}

// Returns the verdict on a scheme that is proved up to a dynamic range but is in no fallback chain.
std::string not_needed(const SchemeRow& row, const Choice& choice, int proved_dynamic_range) {
  const std::string proved_text = binades_text(proved_dynamic_range);
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.products == 0 || candidate.by_norms || !candidate.accepts(proved_dynamic_range)) continue;
    return fmt::format("not needed: {} takes vectors of up to {}, this one of {}, and {}", candidate.scheme,
                       candidate.largest_dynamic_range ? binades_text(*candidate.largest_dynamic_range)
                                                       : "any dynamic range",
                       proved_text,
                       candidate.products < row.products()
                           ? "costs less, " + cost_text(candidate.products, row.products())
                           : "comes before it");
  }
  if (choice.candidates.size() == max_candidates)
    return fmt::format(
        "the fallback chain is full: this scheme takes vectors of up to {}, more than the chain's "
        "emulations, but its {} candidates come before it",
        proved_text, max_candidates);
  return "not needed: the fallback chain holds what is proved and costs less";
}

// Returns the verdict on a scheme that scales vectors and is in no fallback chain.
std::string outside_the_chain(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  const int promised = std::min(row.retained_a->promised_bits, row.retained_b->promised_bits);
  if (row.bound->coefficients.relative > contract.coefficient)
    return fmt::format("not proved: its bound, {:.3g} |A||B|, is above the {:.3g} of accuracy {}",
                       row.bound->coefficients.relative, contract.coefficient, contract.accuracy);
  if (contract.accuracy == "fp32" && promised < fewest_bits_of_fp32)
    return fmt::format(
        "too coarse: it keeps {} bits of an element, FP32's accuracy of a single product needs {}", promised,
        fewest_bits_of_fp32);
  if (choices.special_values > 0) return with_special_values(choices.special_values);
  if (*row.in_window && !row.proved) return of_unproved_scheme(row, contract);
  if (!row.proved_dynamic_range) return "not proved for vectors of any dynamic range";
  return not_needed(row, choices.emulating, *row.proved_dynamic_range);
}

// Returns the policies that select the scheme; "" if none does.
std::string policies_that_select(const std::string& scheme, const Choices& choices) {
  const auto selects = [&](const Choice& choice) {
    return choice.selected && choice.selected_candidate()->scheme == scheme;
  };
  if (selects(choices.by_default) && selects(choices.emulating)) return "policies auto and emulate";
  if (selects(choices.by_default)) return "policy auto";
  return selects(choices.emulating) ? "policy emulate" : "";
}

}  // namespace

std::string verdict(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  if (!row.refusal.empty()) return "does not run: " + row.refusal;
  if (const std::string policies = policies_that_select(row.scheme, choices); !policies.empty()) {
    const bool by_default = policies != "policy emulate";
    return fmt::format("chosen under {}: {}", policies,
                       by_default ? choices.by_default.reason : choices.emulating.reason);
  }
  const Choice& choice = choices.emulating;
  if (!choice.named_scheme.empty())
    return fmt::format("not considered: the settings name {}, so there is no fallback chain",
                       choice.named_scheme);
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.scheme == row.scheme)
      return of_unselected_candidate(candidate, choice, choices.dynamic_range);
  }
  if (choice.has_checked() && row.scheme == checked_scheme) return of_checked_scheme(choice);
  if (row.scheme == "native")
    return fmt::format("not proved to keep the {:.3g} |A||B| of accuracy {}", contract.coefficient,
                       contract.accuracy);
  if (!row.window.scaled) return without_scales(row, choices, contract);
  return outside_the_chain(row, choices, contract);
}

}  // namespace kintsugi::tools
