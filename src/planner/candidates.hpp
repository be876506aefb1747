// Programs that a plan may choose from: what the engine offers, what is proved for the contract.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/device.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Time of the program's products in units of the engine's native FP32 product.
double relative_cost(const Engine& engine, const Program& program);

// Devices multiply complex matrices as embeddings, whose residues are those of real ones.
Program fitted_program(const Plan& plan, const Scheme& scheme);

// How the engine can add the program's products for entries of that type, its preferred way first. A device adds as a
// tensor core does where it has a kernel that lets its sums go when the schedule says so.
std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, EntryType type);

// The schedule with the lengths that blocks and segments of k have in this problem.
Schedule schedule_of(const Problem& problem, const Candidate& candidate);

// Whether a device goes from slices to C in one step.
bool is_fused(const Plan& plan, const Candidate& candidate);

// Whether integer sums may wrap: a program then gives anything.
bool sums_wrap(const Candidate& candidate, std::int64_t k);

// The scheme as a candidate for any span, and how the engine would add its products; nothing when it does not offer that.
std::optional<Candidate> offered(const Plan& plan, const Scheme& scheme, const std::string& accumulator);

// Emulations that are proved to meet the contract, cheapest first; only those that win against a
// native product, unless all are wanted. `native_follows`: as the last candidate.
std::vector<Candidate> proved_emulations(const Plan& plan, const std::string& accumulator, bool all,
                                         bool native_follows);

// What a device computes in one step without rescaling its sums on the way, which takes longer: proved for operands whose
// elements lie at a moderate depth, where rescaled sums hold wider spans.
std::optional<Candidate> quickest_at_depth(const Plan& plan, const std::string& accumulator);

// Complex products by residues of entries, where they are proved to meet the contract.
std::optional<Candidate> proved_entries(const Plan& plan, const std::string& accumulator);

// Residues of few moduli, scaled by norms, which are known to meet the contract on a device that then takes them: where it
// leaves out those that it does not take. `widest`: moduli of a third one, where that is more than the others have.
std::vector<Candidate> norm_emulations(const Plan& plan, const std::string& accumulator, int widest = 0);

// Residues, checked entry by entry, and the superaccumulator: for any span. On a device those of norms before them.
std::vector<Candidate> checked_emulations(const Plan& plan, const std::string& accumulator);

// The same scheme with the k blocks that the engine runs best, where it takes them and stays proved.
Candidate in_larger_blocks(const Plan& plan, const Candidate& candidate);

// The largest exponent of operands that a device takes: it fits residuals (Scheme::fitted_groups), but does nothing else
// that a scheme's `adapt` would. Fails where a program is nothing until it is fitted.
std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k);

}  // namespace kintsugi::core
