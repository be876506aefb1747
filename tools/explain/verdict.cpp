#include "explain/verdict.hpp"

#include <algorithm>
#include <string_view>

namespace kintsugi::tools {

namespace {

// Fewest bits of a split for accuracy fp32. A split to 21 bits loses more than 9 u, the contract for k = 1,
// which even a single product must meet.
constexpr int fewest_bits_of_fp32 = 22;

constexpr std::string_view checked_scheme = "ozaki2";

constexpr std::size_t max_candidates = 4;  // candidates of a plan's fallback chain

std::string cost(int products, int against) {
  return fmt::format("{} product{} against {}", products, products == 1 ? "" : "s", against);
}

// Returns the verdict of the scheme of which the checked candidates are variants, with numbers of moduli that
// the library selects.
std::string among_checked(const Choice& choice) {
  std::string candidates;
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.checked) candidates += (candidates.empty() ? "" : ", ") + candidate.scheme;
  }
  return "in the fallback chain, with as many moduli as the accuracy needs: " + candidates;
}

// Returns the verdict of a candidate of the fallback chain that is not selected.
std::string of_unselected_candidate(const ChainCandidate& candidate, const Choice& choice, int span) {
  if (candidate.by_norms)
    return "in the fallback chain: runs if the norms of all vectors prove it before it runs";
  if (!candidate.takes(span))
    return fmt::format("window too narrow: vectors span up to {}, it takes {}", binades(span),
                       *candidate.dynamic_range);
  if (choice.checked())
    return "the fallback chain's last candidate: for elements that fail the checks of all others";
  const ChainCandidate& taken = *choice.chosen();
  return fmt::format("not needed: {} takes vectors of up to {} and {}", taken.scheme, binades(span),
                     taken.products < candidate.products
                         ? "costs less, " + cost(taken.products, candidate.products)
                         : "comes before it");
}

// Returns the verdict of a scheme inside its window that is not proved: by an element of the sample if that
// suffices, else by what the dynamic ranges allow.
std::string of_unproved_scheme(const SchemeRow& row, const Contract& contract) {
  const double sample_bound = *row.bound->sample_bound;
  if (sample_bound > contract.coefficient)
    return fmt::format("not proved: {:.3g} |A||B| on these data is above the {:.3g} of accuracy {}",
                       sample_bound, contract.coefficient, contract.accuracy);
  return fmt::format(
      "not proved: operands with these spans may have errors of {:.3g} |A||B|, though no sampled element "
      "can have more than {:.3g}",
      *row.bound->spans_bound, sample_bound);
}

std::string with_special_values(std::int64_t specials) {
  return fmt::format("no bound is stated for operands with NaN or infinities, of which there {} {}",
                     specials == 1 ? "is" : "are", specials);
}

// Returns the verdict of a scheme that does not scale vectors. Whether such operands are in its window is not
// known when a plan is made, so it is in no fallback chain.
std::string without_scales(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  const std::string by_name = "it does not scale rows and columns, so it runs by name alone";
  if (choices.specials > 0) return with_special_values(choices.specials) + "; " + by_name;
  if (!*row.in_window)
    return fmt::format("outside its window, elements of 2^{} to 2^{}; {}", row.window.smallest,
                       row.window.largest, by_name);
  if (row.proved) return "proved on these data; but " + by_name;
  return of_unproved_scheme(row, contract);
}

// Returns the verdict of a scheme that is proved for vectors of up to `span` binades but is in no fallback
// chain.
std::string not_needed(const SchemeRow& row, const Choice& choice, int span) {
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.products == 0 || candidate.by_norms || !candidate.takes(span)) continue;
    return fmt::format(
        "not needed: {} takes vectors of up to {}, this one of {}, and {}", candidate.scheme,
        candidate.dynamic_range ? binades(*candidate.dynamic_range) : "any span", binades(span),
        candidate.products < row.products() ? "costs less, " + cost(candidate.products, row.products())
                                            : "comes before it");
  }
  if (choice.candidates.size() == max_candidates)
    return fmt::format(
        "the fallback chain is full: this scheme takes vectors of up to {}, more than the chain's "
        "emulations, but its {} candidates come before it",
        binades(span), max_candidates);
  return "not needed: the fallback chain holds what is proved and costs less";
}

// Returns the verdict of a scheme that scales vectors and is in no fallback chain.
std::string outside_the_chain(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  const int promised = std::min(row.retained_a->promised_bits, row.retained_b->promised_bits);
  if (row.bound->coefficients.relative > contract.coefficient)
    return fmt::format("not proved: its bound, {:.3g} |A||B|, is above the {:.3g} of accuracy {}",
                       row.bound->coefficients.relative, contract.coefficient, contract.accuracy);
  if (contract.accuracy == "fp32" && promised < fewest_bits_of_fp32)
    return fmt::format(
        "too coarse: it keeps {} bits of an element, FP32's accuracy of a single product needs {}", promised,
        fewest_bits_of_fp32);
  if (choices.specials > 0) return with_special_values(choices.specials);
  if (*row.in_window && !row.proved) return of_unproved_scheme(row, contract);
  if (!row.proved_span) return "not proved for vectors of any span";
  return not_needed(row, choices.emulating, *row.proved_span);
}

std::string under_policies(const std::string& scheme, const Choices& choices) {
  const auto chosen_by = [&](const Choice& choice) {
    return choice.chosen() != nullptr && choice.chosen()->scheme == scheme;
  };
  if (chosen_by(choices.by_default) && chosen_by(choices.emulating)) return "policies auto and emulate";
  if (chosen_by(choices.by_default)) return "policy auto";
  return chosen_by(choices.emulating) ? "policy emulate" : "";
}

}  // namespace

std::string verdict(const SchemeRow& row, const Choices& choices, const Contract& contract) {
  if (!row.refusal.empty()) return "does not run: " + row.refusal;
  if (const std::string policies = under_policies(row.scheme, choices); !policies.empty()) {
    const bool by_default = policies != "policy emulate";
    return fmt::format("chosen under {}: {}", policies,
                       by_default ? choices.by_default.reason : choices.emulating.reason);
  }
  const Choice& choice = choices.emulating;
  if (!choice.named.empty())
    return fmt::format("not considered: the settings name {}, so there is no fallback chain", choice.named);
  for (const ChainCandidate& candidate : choice.candidates) {
    if (candidate.scheme == row.scheme) return of_unselected_candidate(candidate, choice, choices.span);
  }
  if (choice.checked() && row.scheme == checked_scheme) return among_checked(choice);
  if (row.scheme == "native")
    return fmt::format("not proved to keep the {:.3g} |A||B| of accuracy {}", contract.coefficient,
                       contract.accuracy);
  if (!row.window.scaled) return without_scales(row, choices, contract);
  return outside_the_chain(row, choices, contract);
}

}  // namespace kintsugi::tools
