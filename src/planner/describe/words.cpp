#include "planner/describe/words.hpp"

#include "base/text/format_text.hpp"

namespace kintsugi::core {

namespace {

const char* rounding_words(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return "to nearest";
    case Rounding::towards_zero: return "towards zero";
    case Rounding::bit_cut: return "by cutting bits";
  }
  return "";
}

std::string split_words(const SplitRule& rule) {
  if (rule.kind == SplitKind::residues) {
    const int count = !rule.complex_basis.empty() ? rule.complex_basis.count()
                      : rule.strassen             ? rule.slices / strassen_products
                                                  : rule.slices;
    if (rule.scales != ScaleRule::exponent)
      return fmt::format(
          "residues modulo {} numbers, rows and columns scaled by {} so that sums stay below 2^{}", count,
          rule.scales == ScaleRule::norm ? "norms" : "a product of magnitudes", rule.sum_bits);
    return fmt::format("residues modulo {} numbers, rows and columns scaled to integers below 2^{}", count,
                       rule.top_exponent + 1);
  }
  if (rule.kind == SplitKind::successive) {
    return fmt::format(
        "up to {} {} slices of integers of {} bits, each on a grid of its row's or column's own{}",
        rule.slices, rule.format->name, rule.residual_exponent,
        rule.sigma_grid ? ", rounded by fl((x + sigma) - sigma): positive elements to even integers" : "");
  }
  if (rule.kind == SplitKind::tiles) {
    return fmt::format("{} segments of 7 bits with one exponent per {} vectors x {} inner indices",
                       rule.slices, rule.tile_vectors, rule.tile_depth);
  }
  if (rule.kind == SplitKind::grid_digits) {
    return fmt::format("{} digits of {} bits of a grid, rows and columns scaled to maxima in [2^{}, 2^{})",
                       rule.slices, rule.residual_exponent, rule.top_exponent, rule.top_exponent + 1);
  }
  std::string words = fmt::format("{} {} slice{} rounded {}", rule.slices, rule.format->name,
                                  rule.slices == 1 ? "" : "s", rounding_words(rule.first_rounding));
  if (rule.slices > 1 && rule.residual_exponent != 0)
    words += fmt::format(", residual x 2^{}", rule.residual_exponent);
  if (rule.slices > 1 && rule.residual_exponent == 0) words += ", residual unscaled";
  words += rule.scale_vectors ? fmt::format(", rows and columns scaled to maxima in [2^{}, 2^{})",
                                            rule.top_exponent, rule.top_exponent + 1)
                              : ", no scaling";
  return words;
}

// Returns the words that explain the number of products, and follow it in the sentence.
std::string term_words(const Program& program) {
  if (program.multiplies_elements())
    return "two of complex elements a modulus where -1 is a square, three a modulus elsewhere";
  if (program.schedule.strassen)
    return "seven of half the size a modulus, by one step of Strassen's algorithm on residues";
  if (program.recombination == Recombination::residues) return "one a modulus";
  if (program.recombination == Recombination::ozaki1) return "at most, for each slice of B";
  const Schedule& schedule = program.schedule;
  std::string words;
  for (const Term& term : schedule.terms) {
    if (term.rescales) words = fmt::format("2^{} ({})", schedule.rescale_exponent, words);
    if (!words.empty()) words += " + ";
    words += fmt::format("a{} b{}", static_cast<int>(term.a), static_cast<int>(term.b));
  }
  return words;
}

const char* operand_words(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? "complex FP32" : "complex FP64";
  if (problem.type == OperandType::dd) return "double-double";
  return problem.type == OperandType::f32 ? "FP32" : "FP64";
}

const char* prepared_words(const Problem& problem) {
  if (problem.prepared_a) return problem.prepared_b ? " (both prepared)" : " (A prepared)";
  return problem.prepared_b ? " (B prepared)" : "";
}

std::string native_words(const Plan& plan, const Candidate& candidate) {
  const char* type = operand_words(plan.problem);
  if (plan.engine->device() != nullptr && plan.widest_emulation() != nullptr) {
    return fmt::format(
        "The native {} product of engine {}'s own kernel, for operands that no emulation accepts.", type,
        plan.engine->name());
  }
  return fmt::format("The native {} product of engine {}{}.", type, plan.engine->name(),
                     candidate.fixed_order
                         ? ", added in a fixed order by a program of this library"
                         : ", the vendor library's, whose bits may depend on layout and threads");
}

std::string acceptance_words(const Acceptance& acceptance) {
  std::string words;
  if (acceptance.by_norms())
    words += " Taken where the norms of A's rows and B's columns prove every element.";
  if (acceptance.any_range()) return words;
  words +=
      fmt::format(" Taken when {} at most {} binades",
                  acceptance.whole_operand ? "A and B each span" : "every row of A and column of B spans",
                  acceptance.dynamic_range);
  if (acceptance.mean_depth == 0) return words + ".";
  return words + fmt::format(
                     ", or the elements of a row and a column that are multiplied lie on average at most {} "
                     "binades, together, below the largest ones.",
                     acceptance.mean_depth);
}

std::string program_words(const Candidate& candidate) {
  const Schedule& schedule = candidate.program.schedule;
  const std::string accumulation =
      schedule.k_block == 0
          ? "the sums stay in the engine over all of k"
          : fmt::format("partial sums are added outside the engine every {} inner indices", schedule.k_block);
  return fmt::format("{}: {}; {} product{}, {}; {}; accumulator {}.", candidate.scheme_name(),
                     split_words(candidate.program.split_a), schedule.terms.size(),
                     schedule.terms.size() == 1 ? "" : "s", term_words(candidate.program), accumulation,
                     accumulator_name(candidate.accumulator));
}

std::string candidate_words(const Plan& plan, const Candidate& candidate) {
  if (candidate.scheme == nullptr) return native_words(plan, candidate);
  if (candidate.program.recombination == Recombination::exact_sums)
    return fmt::format("{}: every element summed exactly and rounded once, on the {}.",
                       candidate.scheme_name(), plan.engine->device() != nullptr ? "device" : "host");
  std::string words = program_words(candidate);
  if (candidate.checked) {
    words += " Every element is checked when it is computed; the next candidates compute those that fail.";
  }
  return words + acceptance_words(candidate.acceptance);
}

// Returns the sentence on why the plan has this fallback chain.
std::string reason_words(const Plan& plan) {
  const std::string& scheme = plan.request.scheme;
  if (!scheme.empty()) {
    const std::string words = fmt::format("Scheme {} was named, so it runs whatever it costs", scheme);
    if (!plan.request.accuracy) return words + ".";
    return words +
           fmt::format("; accuracy {}, which was set too, allows an error of {:.3g} |A||B| at k = {}.",
                       plan.accuracy_text(), plan.contract.coefficient, plan.problem.k);
  }
  const Policy policy = plan.request.policy;
  const std::string allowed = fmt::format("Accuracy {} allows an error of {:.3g} |A||B| at k = {}",
                                          plan.accuracy_text(), plan.contract.coefficient, plan.problem.k);
  if (policy == Policy::native) return allowed + "; policy native never emulates.";
  if (plan.widest_emulation() != nullptr) {
    return allowed + "; the first program below that is proved for the operands runs.";
  }
  if (policy == Policy::emulate) {
    return allowed + "; no emulation is proved to give that, so the native product runs in a fixed order.";
  }
  return allowed +
         fmt::format(
             "; on engine {} the native product is expected to be faster than any emulation, so policy auto "
             "selects it.",
             plan.engine->name());
}

}  // namespace

std::vector<std::string> plan_words(const Plan& plan) {
  const Problem& problem = plan.problem;
  std::vector<std::string> words;
  words.push_back(fmt::format(
      "{} x {} result, inner length {}, batch of {}, {} operands{}, engine {} ({}), {} thread{}.", problem.m,
      problem.n, problem.k, problem.batch_count, operand_words(problem), prepared_words(problem),
      plan.engine->name(), plan.engine->details(), plan.threads, plan.threads == 1 ? "" : "s"));
  for (const std::string& warning : plan.warnings) words.push_back("Warning: " + warning + ".");
  words.push_back(reason_words(plan));
  if (!plan.offload_words.empty()) words.push_back(plan.offload_words);
  for (std::size_t index = 0; index < plan.candidates.size(); ++index) {
    const std::string number = plan.candidates.size() == 1 ? "" : fmt::format("{}. ", index + 1);
    words.push_back(number + candidate_words(plan, plan.candidates[index]));
  }
  if (problem.complex && plan.widest_emulation() != nullptr) {
    words.push_back(
        fmt::format("Real and imaginary parts are the {} columns of one real product of inner length {}; "
                    "bounds hold for each part.",
                    problem.vectors_b(), problem.products()));
  }
  if (plan.workspace_bytes > 0) {
    words.push_back(fmt::format("Workspace {} bytes; blocks of {} x {} elements of C.", plan.workspace_bytes,
                                plan.blocking.m, plan.blocking.n));
  }
  return words;
}

}  // namespace kintsugi::core
