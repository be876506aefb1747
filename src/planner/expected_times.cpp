#include "planner/expected_times.hpp"

#include "planner/candidates.hpp"
#include "planner/device_call.hpp"
#include "planner/limits.hpp"
#include "planner/problem.hpp"
#include "planner/steps.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

namespace {

double padded(std::int64_t length, std::int64_t multiple) {
  return static_cast<double>(round_up(length, multiple));
}

// Returns the time of one multiplication of two elements of slices.
double multiplication_time(const Engine& engine, const Program& program, const StepCosts& costs) {
  return costs.product > 0 ? costs.product : 1 / engine.relative_rate(program.format().id);
}

}  // namespace

ExpectedTimes expected_times(const StepCosts& costs, const NativeCosts& native, const Program& program,
                             const Problem& problem) {
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double parts = problem.complex ? 2 : 1;
  // The embedding has two vectors of op(B) and two columns of sums for each complex column of C.
  const double vectors_per_column = program.multiplies_elements() ? 1 : parts;
  const double split_rows = problem.prepared_a ? 0 : m;
  const double split_columns = problem.prepared_b ? 0 : vectors_per_column * n;
  const double elements = parts * (split_rows + split_columns) * k;
  // Number of products of m x k and k x n slices. A term of the embedding, with 2 k inner indices and 2 n
  // columns, counts as four.
  const double slice_products = static_cast<double>(program.schedule.terms.size()) *
                                (program.multiplies_elements() ? 1 : parts * parts);
  const bool has_tiles = costs.tile > 1;
  const double multiplication = costs.product * slice_products * padded(problem.m, costs.tile) *
                                padded(problem.n, costs.tile) *
                                padded(problem.k, has_tiles ? Slices::k_multiple : 1);
  const double emulated =
      native.call + elements * (costs.element + program.split_a.slices * costs.slice) + multiplication +
      m * n * (parts * costs.result + vectors_per_column * program.schedule.sums() * costs.sum);
  const double width =
      problem.type == OperandType::f64 ? 2 : 1;  // bytes of an element / bytes of an FP32 number
  const double native_multiplication =
      (problem.type == OperandType::f64 ? native.fp64 : 1) * parts * parts * m * n * k;
  return {.emulated = emulated,
          .native =
              native.call + width * parts * (m * k + k * n + m * n) * native.element + native_multiplication};
}

ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem,
                             const CallConditions& conditions) {
  StepCosts costs = engine.step_costs(program.split_a, conditions);
  costs.product = multiplication_time(engine, program, costs);
  return expected_times(costs, engine.native_costs(conditions.threads), program, problem);
}

double expected_term(const Engine& engine, const Program& program, const Problem& problem,
                     const CallConditions& conditions) {
  const auto k = static_cast<double>(problem.k);
  const StepCosts costs = engine.step_costs(program.split_a, conditions);
  // Elements of one slice of A (m x k) and one slice of B (k x n) for each of the m x n elements of C.
  const double split_elements = k * (1 / static_cast<double>(problem.m) + 1 / static_cast<double>(problem.n));
  return multiplication_time(engine, program, costs) * k + costs.slice * split_elements + costs.sum;
}

namespace {

// Time of the check of one real element, measured on a Zen 5 for 1000 x 1000 x 8.
constexpr double element_check = 600;

// True if nearly all elements are summed in two doubles. Complex ones are if alpha and beta are real, which
// no plan knows.
bool sums_in_two_doubles(const Engine& engine, const Problem& problem, bool has_real_scalars) {
  return engine.host() != nullptr && engine.host()->sum_kernels() != nullptr &&
         problem.type != OperandType::dd && (!problem.complex || has_real_scalars);
}

}  // namespace

double expected_check(const Engine& engine, const Program& program, const Problem& problem,
                      const CallConditions& conditions) {
  return element_check * (problem.complex ? 2 : 1) + static_cast<double>(program.schedule.terms.size()) *
                                                         expected_term(engine, program, problem, conditions);
}

ExactSumTimes expected_exact_sums(const Engine& engine, const Problem& problem, bool has_real_scalars) {
  const auto k = static_cast<double>(problem.k);
  if (!sums_in_two_doubles(engine, problem, has_real_scalars)) {
    // A superaccumulator takes 10 to 12 ns for each product on CPUs that reach about 70 GFLOP/s in FP32.
    // There the unit of time is 2 / 70 ns. A product of two complex or double-double elements is one of four
    // products of their parts.
    constexpr double superaccumulator_product = 700;
    const double time =
        superaccumulator_product * (problem.type == OperandType::dd || problem.complex ? 4 : 1) * k;
    return {.of_all = time, .of_open = time};
  }
  // Measured on a Zen 5 (unit 0.0098 ns): products, the rounding of an element, and for an element by itself
  // the copies of its vectors and the additions of lanes.
  constexpr double product = 16;
  constexpr double result = 200;
  constexpr double copied_product = 100;
  constexpr double lanes = 10'000;
  const double parts = problem.complex ? 2 : 1;  // each with two products for each of k
  return {.of_all = parts * (parts * product * k + result),
          .of_open = parts * ((product + copied_product) * parts * k + lanes)};
}

bool exact_sums_pay(const Engine& engine, const Program& program, const Problem& problem,
                    const CallConditions& conditions, bool has_real_scalars) {
  if (!sums_in_two_doubles(engine, problem, has_real_scalars)) return false;
  // A checked product takes more time than one that is not: it tries candidates on a tile, finds bounds of
  // all vectors and checks every element. Measured on a Zen 5 for n = 8 to 256, and 1000 x 1000 x 8.
  constexpr double share_of_product = 1.2;
  constexpr double call = 3e6;
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  const double checked = call + element_check * elements +
                         share_of_product * expected_times(engine, program, problem, conditions).emulated;
  return elements * expected_exact_sums(engine, problem, has_real_scalars).of_all < checked;
}

namespace {

// Properties of a problem, beside shape and type, on which expected times depend.
struct Circumstances {
  bool prepared_a = false;
  bool prepared_b = false;
  bool is_aligned = true;
  bool adds_to_c = false;
  bool is_along_k_a = true;
  bool is_along_k_b = true;
};

// Emulated FP32 products have no cost of reading C.
Circumstances circumstances_of(const Problem& problem) {
  const bool knows_updates = problem.type == OperandType::f64 || problem.complex;
  return {problem.prepared_a,
          problem.prepared_b,
          has_aligned_lines(problem),
          problem.adds_to_c && knows_updates,
          operand_storage(problem, Side::a).along_k,
          operand_storage(problem, Side::b).along_k};
}

std::optional<DeviceTimes> times_of(const Plan& plan, const Candidate& candidate,
                                    const Circumstances& circumstances) {
  const bool are_measured = fused_kernel(plan, candidate) != nullptr ||
                            candidate.program.multiplies_elements() || candidate.acceptance.by_norms();
  if (!are_measured) return std::nullopt;
  const Problem& problem = plan.problem;
  return cuda::expected_times({.schedule = candidate.program.schedule,
                               .format = candidate.program.format().id,
                               .type = element_type(problem),
                               .m = problem.m,
                               .n = problem.n,
                               .k = problem.k,
                               .items = problem.batch_count,
                               .prepared_a = circumstances.prepared_a,
                               .prepared_b = circumstances.prepared_b,
                               .is_aligned = circumstances.is_aligned,
                               .adds_to_c = circumstances.adds_to_c,
                               .is_along_k_a = circumstances.is_along_k_a,
                               .is_along_k_b = circumstances.is_along_k_b});
}

}  // namespace

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate) {
  return times_of(plan, candidate, circumstances_of(plan.problem));
}

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate,
                                                 Slicing slicing) {
  Circumstances circumstances = circumstances_of(plan.problem);
  circumstances.prepared_a = circumstances.prepared_b = slicing == Slicing::both_prepared;
  return times_of(plan, candidate, circumstances);
}

std::optional<DeviceTimes> expected_times_in_any_layout(const Plan& plan, const Candidate& candidate) {
  return times_of(plan, candidate, Circumstances{});
}

bool precedes_native(const Plan& plan, const Candidate& candidate) {
  // Circumstances must not change which candidates a chain has.
  const auto times = times_of(plan, candidate, Circumstances{});
  return !times || times->emulated < limits::max_time_ratio_of_later * times->native;
}

}  // namespace kintsugi::core
