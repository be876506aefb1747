// The choice of program and engine: contract + shape + capabilities -> plan.
#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "arith/residue.hpp"
#include "engines/device.hpp"
#include "engines/registry.hpp"
#include "plan/bound.hpp"
#include "plan/plan.hpp"
#include "plan/schemes/superaccumulator.hpp"

namespace kintsugi::core {

namespace {

// A leading dimension that is never stepped over counts for nothing.
std::int64_t largest_size(const Problem& problem) {
  const auto used = [&](std::int64_t ld, std::int64_t rows, std::int64_t columns, Op op) {
    const bool unit_down = (problem.layout == Layout::column_major) == (op == Op::none);
    return (unit_down ? columns : rows) > 1 ? ld : 0;
  };
  return std::max({problem.m, problem.vectors_b(), problem.products(),
                   used(problem.lda, problem.m, problem.k, problem.op_a),
                   used(problem.ldb, problem.k, problem.n, problem.op_b),
                   used(problem.ldc, problem.m, problem.n, Op::none)});
}

// The first that works where the matrices are; host matrices are staged only for an engine that was named.
const Engine& choose_available_engine(const Problem& problem, std::int64_t size) {
  std::string reasons;
  for (const Engine* engine : all_engines()) {
    if ((engine->device() != nullptr) != (problem.memory == MemorySpace::device)) continue;
    const std::string reason = engine->unavailable_reason();
    if (reason.empty() && size <= engine->largest_size()) return *engine;
    reasons += fmt::format("; {}: {}", engine->name(), reason.empty() ? "a size is too large" : reason);
  }
  fail(Status::engine_unavailable, "no engine can multiply matrices in the {} memory{}",
       problem.memory == MemorySpace::device ? "device's" : "host's", reasons);
}

const Engine& choose_engine(const Problem& problem, const std::string& name) {
  const std::int64_t size = largest_size(problem);
  if (name == "auto") return choose_available_engine(problem, size);
  const Engine* engine = find_engine(name);
  if (engine == nullptr) {
    fail(Status::bad_setting, "there is no engine \"{}\"; the engines are auto, {}", name, engine_names());
  }
  if (const std::string reason = engine->unavailable_reason(); !reason.empty()) {
    fail(Status::engine_unavailable, "engine {} cannot run here: {}", name, reason);
  }
  if (problem.memory == MemorySpace::device && engine->device() == nullptr) {
    fail(Status::not_supported, "engine {} works on the host's memory, and A, B and C are in a device's",
         name);
  }
  if (size > engine->largest_size()) {
    fail(Status::not_supported, "engine {} takes sizes up to {} and one of these is {}", name,
         engine->largest_size(), size);
  }
  return *engine;
}

// For a scheme that was named: what it cannot have is an error.
Accumulator choose_accumulator(const Engine& engine, const Format& format, const std::string& name) {
  const auto ways = engine.accumulators(format.id);
  if (ways.empty()) {
    fail(Status::not_supported, "engine {} does not multiply {}", engine.name(), format.name);
  }
  if (name.empty()) return ways.front();
  const auto found = std::find(ways.begin(), ways.end(), find_accumulator(name));
  if (found != ways.end()) return *found;
  std::string offered;
  for (const Accumulator way : ways)
    offered += (offered.empty() ? "" : ", ") + std::string(accumulator_name(way));
  fail(Status::not_supported, "engine {} does not add {} products as \"{}\"; it offers {}", engine.name(),
       format.name, name, offered);
}

const char* type_name(OperandType type) { return type == OperandType::f32 ? "fp32" : "fp64"; }

// Coefficient of (|A||B|)_ij that the accuracy allows; 0: nothing but the correctly rounded result.
double contract_coefficient(const std::string& accuracy, std::int64_t k) {
  if (accuracy == "fp32") return contract_of_type(OperandType::f32, k);
  if (accuracy == "fp64") return contract_of_type(OperandType::f64, k);
  if (accuracy == "exact") return 0;
  double tolerance = 0;
  std::from_chars(accuracy.data(), accuracy.data() + accuracy.size(), tolerance);
  return tolerance;
}

// As accurate as products in FP32 or FP64, not of a tolerance.
bool is_of_type(const Contract& contract) {
  return contract.accuracy == "fp32" || contract.accuracy == "fp64";
}

// What a checked entry shows (plan/plan.hpp). A coefficient that leaves hardly anything beside the last rounding asks
// for the correctly rounded result.
double checked_coefficient(const Contract& contract, OperandType type) {
  if (is_of_type(contract)) return contract_coefficient(contract.accuracy, 1);
  return contract.coefficient >= 2 * unit_roundoff(type) ? contract.coefficient : 0;
}

// Inner products rounded to nearest lose at most k u |a||b|, in any order, fused or not, without a
// second-order term (Jeannerod and Rump, Improved error bounds for inner products in floating-point
// arithmetic, 2013). A part of a complex entry is such a product of length 2 k.
double native_coefficient(OperandType type, std::int64_t k) {
  return static_cast<double>(k) * unit_roundoff(type);
}

// An emulation that is proved, and its coefficient of |A||B| at best.
struct Proved {
  Rung rung;
  double coefficient;
};

// The widest span at which the program is proved to meet the contract; nothing: not even at 0. What stands for
// FP32 (FP64) must also keep its bits in every single product (9 u, the contract at k = 1): a long sum would forgive a
// coarse split that the native product never has.
std::optional<Proved> prove(const Rung& rung, const Contract& contract, OperandType type, std::int64_t k) {
  const Program& program = rung.program;
  // Algorithm 3 of the Ozaki scheme estimates; ozaki2 has fewer products for a proof.
  if (program.recombination == Recombination::error_free) return std::nullopt;
  Proved proved{rung, 0};
  if (!program.split_a.scale_vectors || !program.split_b.scale_vectors) return std::nullopt;
  const double unit = contract.accuracy == "fp32" ? 0x1p-24 : 0x1p-53;
  if (is_of_type(contract) && split_loss(program) > 9 * unit) return std::nullopt;
  const ErrorBound bound = error_bound(program, rung.accumulator, k, true, true);
  int span = std::min(window_span(program.split_a), window_span(program.split_b));
  while (span >= 0 && relative_bound(program, bound, type, k, span, span) > contract.coefficient) --span;
  if (span < 0) return std::nullopt;
  proved.rung.largest_span = span;
  // All that integer programs lose is in the floors.
  proved.coefficient =
      program.format().floating ? bound.relative : relative_bound(program, bound, type, k, 0, 0);
  return proved;
}

// Time of the program's products in units of the engine's native FP32 product.
double relative_cost(const Engine& engine, const Program& program) {
  if (program.recombination == Recombination::exact_sums) return std::numeric_limits<double>::infinity();
  const double share = program.multiplies_entries() ? 0.25 : 1;  // of the four products of an embedding
  return share * static_cast<double>(program.schedule.terms.size()) /
         engine.relative_rate(program.format().id);
}

// Steps that a device has.
bool runs_on_device(const Program& program) {
  return program.recombination == Recombination::weighted || program.recombination == Recombination::residues;
}

// Devices multiply complex matrices as embeddings, whose residues are those of real ones.
Program fitted_program(const Plan& plan, const Scheme& scheme) {
  if (plan.engine->device() == nullptr) return kintsugi::core::fitted_program(scheme, plan.problem);
  return kintsugi::core::fitted_program(scheme, plan.problem.type, plan.problem.products());
}

// Whether integer sums may wrap: a program then gives anything.
bool sums_wrap(const Rung& rung, std::int64_t k) {
  return !rung.program.format().floating &&
         std::isinf(error_bound(rung.program, rung.accumulator, k, true, true).relative);
}

// The scheme as a rung for any span, and how the engine would add its products; nothing when it does not offer that.
std::optional<Rung> offered(const Plan& plan, const Scheme& scheme, const std::string& name) {
  if (!scheme.operands.contains(plan.problem.type)) return std::nullopt;
  Rung rung{&scheme, Accumulator::fp32, Rung::any_span, fitted_program(plan, scheme)};
  if (plan.engine->device() != nullptr && !runs_on_device(rung.program)) return std::nullopt;
  if (rung.program.recombination == Recombination::exact_sums) return rung;
  const auto ways = plan.engine->accumulators(rung.program.format().id);
  const auto found =
      name.empty() ? ways.begin() : std::find(ways.begin(), ways.end(), find_accumulator(name));
  if (found == ways.end()) return std::nullopt;
  rung.accumulator = *found;
  return sums_wrap(rung, plan.problem.products()) ? std::nullopt : std::optional(rung);
}

// Makes a ladder of increasing spans fit its places. Where native follows, the widest go: it takes what they would.
// Else those go first that a wider one of the same cost follows, and then those before the widest.
void shorten(std::vector<Rung>& ladder, const Engine& engine, std::size_t most, bool native_follows) {
  while (ladder.size() > most) {
    const auto replaced = std::adjacent_find(ladder.begin(), ladder.end(), [&](const Rung& x, const Rung& y) {
      return relative_cost(engine, x.program) == relative_cost(engine, y.program);
    });
    if (native_follows) {
      ladder.pop_back();
    } else {
      ladder.erase(replaced != ladder.end() ? replaced : ladder.end() - 2);
    }
  }
}

// Emulations that are proved to meet the contract, cheapest first; only those that win against a
// native product, unless all are wanted. `native_follows`: as the last rung.
std::vector<Rung> proved_emulations(const Plan& plan, const std::string& accumulator, bool all,
                                    bool native_follows) {
  std::vector<Proved> proved;
  for (const Scheme* scheme : all_schemes()) {
    const auto rung = offered(plan, *scheme, accumulator);
    if (!rung || !(all || relative_cost(*plan.engine, rung->program) < 1)) continue;
    if (const auto proof = prove(*rung, plan.contract, plan.problem.type, plan.problem.products()))
      proved.push_back(*proof);
  }
  // At equal cost the more accurate one goes first.
  const auto rank = [&](const Proved& p) {
    return std::pair(relative_cost(*plan.engine, p.rung.program), p.coefficient);
  };
  std::stable_sort(proved.begin(), proved.end(),
                   [&](const Proved& x, const Proved& y) { return rank(x) < rank(y); });
  // A rung that takes no more than one before it would never be reached.
  std::vector<Rung> ladder;
  for (const auto& [rung, coefficient] : proved) {
    if (ladder.empty() || rung.largest_span > ladder.back().largest_span) ladder.push_back(rung);
  }
  shorten(ladder, *plan.engine, Plan::most_rungs - (native_follows ? 1 : 0), native_follows);
  return ladder;
}

// Bits of the integers that a checked ladder's rungs keep of every vector: enough that a product alone loses no more
// than the contract of its type (k = 1) or the tolerance allows, and ten and twenty-eight more for rows and columns of
// wide ranges, where entries that no rung shows are left for the superaccumulator.
std::array<int, 3> checked_bits(const Plan& plan) {
  const int digits = plan.problem.type == OperandType::f32 ? 24 : 53;
  int bits = digits + 2;
  if (plan.contract.coefficient > 0 && !is_of_type(plan.contract))
    bits = std::min(bits, 2 - std::ilogb(plan.contract.coefficient));
  return {std::max(bits, 2), bits + 10, bits + 28};
}

// The program of residues that holds integers of that many bits, by the fewest moduli; nothing where not even all do.
const Scheme* residues_of(int bits, std::int64_t k) {
  const auto sum_bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(k, 1) - 1)));
  for (int count = 2; count <= most_moduli; ++count) {
    if (residue_bits(count) >= 2 * bits + sum_bits)
      return find_scheme(fmt::format("ozaki2:moduli={}", count));
  }
  return nullptr;
}

// Slices come in tiles of 128 vectors: residues of a few long sums would take gigabytes of padding.
bool is_few_long_sums(const Problem& problem) {
  constexpr std::int64_t few = 1024;
  constexpr std::int64_t long_sum = 65536;
  return problem.products() >= long_sum && problem.m <= few && problem.vectors_b() <= few &&
         problem.m * problem.vectors_b() <= few;
}

// Residues, checked entry by entry, and the superaccumulator: for any span.
std::vector<Rung> checked_emulations(const Plan& plan, const std::string& accumulator) {
  std::vector<Rung> ladder;
  for (const int bits : checked_bits(plan)) {
    if (is_few_long_sums(plan.problem)) break;
    const Scheme* scheme = residues_of(bits, plan.problem.products());
    const auto rung = scheme == nullptr ? std::nullopt : offered(plan, *scheme, accumulator);
    if (!rung) break;
    ladder.push_back(*rung);
    ladder.back().checked = true;
  }
  if (const auto last = offered(plan, schemes::superaccumulator, accumulator)) ladder.push_back(*last);
  return ladder;
}

// Contracts that only checked programs meet: correct rounding, and FP64's, whose integers are proved for narrow
// ranges alone. The last rounding must not break them.
bool asks_for_checks(const Plan& plan) {
  const double coefficient = plan.contract.coefficient;
  return coefficient == 0 ||
         (plan.problem.type == OperandType::f64 && coefficient >= unit_roundoff(OperandType::f64));
}

void use_named_scheme(Plan& plan, const Settings& settings) {
  const std::string& name = settings[SettingId::scheme].value;
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) {
    fail(Status::bad_setting, "there is no scheme \"{}\"; the schemes are {}", name, scheme_names());
  }
  if (!scheme->operands.contains(plan.problem.type)) {
    fail(Status::not_supported, "scheme {} does not take {} operands", name, type_name(plan.problem.type));
  }
  Rung rung{scheme, Accumulator::fp32, Rung::any_span, fitted_program(plan, *scheme)};
  if (plan.engine->device() != nullptr && !runs_on_device(rung.program)) {
    fail(Status::not_supported, "engine {} has no kernels for what scheme {} asks of the {}",
         plan.engine->name(), name,
         rung.program.recombination == Recombination::exact_sums ? "sums" : "splits");
  }
  if (rung.program.recombination != Recombination::exact_sums) {
    rung.accumulator =
        choose_accumulator(*plan.engine, rung.program.format(), settings[SettingId::accumulator].value);
    if (sums_wrap(rung, plan.problem.products())) {
      fail(Status::not_supported, "scheme {}: sums of {} products may wrap in {}", name,
           plan.problem.products(), accumulator_name(rung.accumulator));
    }
  }
  plan.contract.coefficient = 0;
  plan.rungs = {rung};
}

[[noreturn]] void fail_unreachable(const Plan& plan, const std::string& policy) {
  const Problem& problem = plan.problem;
  fail(Status::contract_unreachable,
       "accuracy \"{}\" allows {:.3g} of |A||B| at k = {}; under policy \"{}\" no program for {} operands on "
       "engine {} is "
       "proved to give that (the native product is proved for {:.3g})",
       plan.contract.accuracy, plan.contract.coefficient, problem.k, policy,
       entry_type_name(problem.type, problem.complex), plan.engine->name(),
       native_coefficient(problem.type, problem.products()));
}

// The same scheme with the k blocks that the engine runs best, where it takes them and stays proved.
Rung in_larger_blocks(const Plan& plan, const Rung& rung) {
  const Scheme* scheme = rung.scheme->parameters.starts_with("block=")
                             ? find_scheme(fmt::format("{}:block={}", rung.scheme->name,
                                                       plan.engine->device()->preferred_block()))
                             : nullptr;
  if (scheme == nullptr) return rung;
  const auto larger = offered(plan, *scheme, accumulator_name(rung.accumulator));
  const auto proof =
      larger ? prove(*larger, plan.contract, plan.problem.type, plan.problem.products()) : std::nullopt;
  return proof && proof->rung.largest_span >= rung.largest_span ? proof->rung : rung;
}

// A stream cannot skip the vendor's products, so that a ladder has one emulation, the widest of the cheapest ones, in
// blocks that the engine likes; it runs always, and where the device then finds that its window does not hold the
// operands, the engine's own plain product takes their place.
void use_device_policy(Plan& plan, const Settings& settings, bool native_proved) {
  const std::string& policy = settings[SettingId::policy].value;
  if (!native_proved) fail_unreachable(plan, policy);
  if (policy == "emulate" && plan.problem.type == OperandType::f32) {
    const std::string& accumulator = settings[SettingId::accumulator].value;
    for (const Rung& rung : proved_emulations(plan, accumulator, true, true)) {
      const bool as_cheap = plan.rungs.empty() || relative_cost(*plan.engine, rung.program) <=
                                                      relative_cost(*plan.engine, plan.rungs.front().program);
      if (as_cheap) plan.rungs = {in_larger_blocks(plan, rung)};
    }
  }
  plan.rungs.push_back({nullptr, Accumulator::fp32, Rung::any_span});
}

void use_policy(Plan& plan, const Settings& settings) {
  const std::string& policy = settings[SettingId::policy].value;
  const bool native_proved =
      native_coefficient(plan.problem.type, plan.problem.products()) <= plan.contract.coefficient;
  if (plan.engine->device() != nullptr) return use_device_policy(plan, settings, native_proved);
  if (policy != "native" && asks_for_checks(plan) && (policy == "emulate" || !native_proved)) {
    plan.rungs = checked_emulations(plan, settings[SettingId::accumulator].value);
    return;
  }
  if (policy != "native") {
    plan.rungs = proved_emulations(plan, settings[SettingId::accumulator].value,
                                   policy == "emulate" || !native_proved, native_proved);
  }
  if (native_proved) plan.rungs.push_back({nullptr, Accumulator::fp32, Rung::any_span});
  if (plan.rungs.empty()) fail_unreachable(plan, policy);
}

// A scheme and policy native exclude each other: the one from the nearer place counts.
Settings settle_scheme_and_policy(Settings settings) {
  const SettingValue& scheme = settings[SettingId::scheme];
  const SettingValue& policy = settings[SettingId::policy];
  if (scheme.value.empty() || policy.value != "native") return settings;
  if (nearer(policy, scheme)) {
    settings.reset(SettingId::scheme);
  } else if (nearer(scheme, policy)) {
    settings.reset(SettingId::policy);
  } else {
    fail(Status::bad_setting, "scheme = \"{}\" and policy = \"native\" contradict each other", scheme.value);
  }
  return settings;
}

void check_accumulator_name(const std::string& name) {
  if (name.empty() || find_accumulator(name)) return;
  fail(Status::bad_setting, "there is no accumulator \"{}\"; the accumulators are {}", name,
       accumulator_names());
}

}  // namespace

Program fitted_program(const Scheme& scheme, OperandType type, std::int64_t k) {
  Program program = scheme.program;
  if (scheme.fit != nullptr && k > 0) scheme.fit(program, type, k);
  return program;
}

Program fitted_program(const Scheme& scheme, const Problem& problem) {
  Program program = fitted_program(scheme, problem.type, problem.products());
  if (problem.complex && scheme.multiply_entries != nullptr && problem.k > 0)
    scheme.multiply_entries(program);
  return program;
}

const Rung* Plan::widest_emulation() const {
  const Rung* widest = nullptr;
  for (const Rung& rung : rungs) {
    if (rung.scheme != nullptr && (widest == nullptr || rung.largest_span >= widest->largest_span))
      widest = &rung;
  }
  return widest;
}

Plan make_plan(const Problem& problem, const Settings& given, const Allocator& allocator,
               const Queue& queue) {
  const Settings settings = settle_scheme_and_policy(given);
  Plan plan;
  plan.problem = problem;
  plan.allocator = allocator;
  plan.queue = queue;
  plan.settings = settings;
  const auto threads = static_cast<int>(parse_integer(settings[SettingId::threads].value));
  plan.threads = threads == 0 ? omp_get_max_threads() : threads;
  check_accumulator_name(settings[SettingId::accumulator].value);
  plan.engine = &choose_engine(problem, settings[SettingId::engine].value);
  const std::string& accuracy = settings[SettingId::accuracy].value;
  plan.contract.accuracy = accuracy.empty() ? type_name(problem.type) : accuracy;
  plan.contract.coefficient = contract_coefficient(plan.contract.accuracy, problem.products());
  plan.contract.checked_coefficient = checked_coefficient(plan.contract, problem.type);
  if (settings[SettingId::scheme].value.empty()) {
    use_policy(plan, settings);
  } else {
    use_named_scheme(plan, settings);
  }
  const auto limit = static_cast<std::size_t>(parse_bytes(settings[SettingId::workspace_limit].value));
  plan.blocking = fit_blocking(plan, limit);
  // Staged matrices take none of the host's.
  const bool staged = plan.engine->device() != nullptr && problem.memory == MemorySpace::host;
  plan.workspace_bytes = staged ? 0 : workspace_bytes(plan, plan.blocking);
  if (plan.engine->device() != nullptr) plan.engine->device()->prepare();
  return plan;
}

}  // namespace kintsugi::core
