#include "explain/scheme_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/measure/bound_check.hpp"

namespace kintsugi::tools {

namespace {

// True if the operand is inside the split's window. Every finite operand is inside the window of an integer
// format, since the floors of the bound cover small elements.
bool is_in_window(const Json& split, const OperandFacts& facts) {
  if (!facts.is_finite()) return false;
  const measure::SplitWindow window = measure::split_window(description_of(split));
  if (window.integer || !facts.largest_exponent) return true;
  if (window.scaled) return facts.widest_dynamic_range <= window.dynamic_range;
  return *facts.smallest_exponent >= window.smallest && *facts.largest_exponent <= window.largest;
}

// Returns the smallest magnitude of an element that lies `binades` below the largest element of its vector,
// in units of the split. An integer format may scale the largest element one binade lower, to leave room for
// rounding.
double smallest_below_largest(const Json& split, int binades) {
  const measure::SplitDescription description = description_of(split);
  const bool reserves_rounding_bit = measure::split_window(description).reserves_rounding_bit;
  return std::ldexp(1.0, description.top_exponent - (reserves_rounding_bit ? 1 : 0) - binades);
}

// Returns a lower bound of the magnitudes of all non-zero elements, in units of the split; 1 if all elements
// are zero.
double smallest_element(const Json& split, const OperandFacts& facts) {
  if (!facts.largest_exponent) return 1;
  if (!description_of(split).scale_vectors) return std::ldexp(1.0, *facts.smallest_exponent);
  return smallest_below_largest(split, facts.widest_dynamic_range);
}

// True if the recombination rounds the result. False if the engine returns a single sum, which already has
// the result's type.
bool recombination_rounds(const Json& schedule) {
  return !schedule.at("joint").get<bool>() && schedule.at("groups").get<int>() != 1;
}

measure::BoundCoefficients coefficients_of(const Json& bound) {
  return {bound.at("relative"), bound.at("floor_a"), bound.at("floor_b"), bound.at("floor_both")};
}

template <class T>
double largest_of_sample(const measure::BoundCoefficients& bound, const measure::VectorNorms& a,
                         const measure::VectorNorms& b, const std::vector<measure::ElementError>& elements) {
  double largest = 0;
  for (const auto& element : elements) {
    if (element.absolute > 0)
      largest = std::max(largest, measure::allowed_error<T>(bound, element, a, b) / element.absolute);
  }
  return largest;
}

// True if the errors meet the contract. If it is the contract of the report, the report's verdict decides,
// which also takes subnormal results into account.
bool meets(const measure::ErrorReport& errors, const Contract& contract) {
  if (contract.accuracy == "exact") return errors.correctly_rounded_fraction == 1;
  return contract.coefficient == errors.contract_bound ? errors.within_contract_bound
                                                       : errors.max_componentwise <= contract.coefficient;
}

Json retained_document(const std::optional<measure::RetainedCounts>& counts) {
  if (!counts) return nullptr;
  return {{"elements", counts->elements},
          {"promised_bits", counts->promised_bits},
          {"elements_with_promised_bits", counts->promised},
          {"fewest_bits", counts->fewest}};
}

Json optional_number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

}  // namespace

template <class T>
measure::RetainedCounts SchemeRows<T>::retained(measure::Side side, const Json& split) {
  const auto [found, is_new] = retained_.try_emplace(std::pair(side, split.dump()));
  if (is_new)
    found->second = measure::count_retained_bits(description_of(split), side == measure::Side::a ? a_ : b_);
  return found->second;
}

// Divides the floors of the bound by min_a and min_b, to make them relative to |A||B|. No non-zero element is
// smaller, and zeros have no error. For an integer format floor_both counts all k products of an element of
// C, and |A||B| is a sum of k products, too.
template <class T>
double SchemeRows<T>::bound_for_smallest(const Json& program, const measure::BoundCoefficients& bound,
                                         double min_a, double min_b) const {
  constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
  const bool is_integer = measure::split_window(description_of(program.at("split_a"))).integer;
  const double products = is_integer ? static_cast<double>(sample_.a().columns) : 1;
  const double unrounded = bound.relative + bound.floor_a / min_a + bound.floor_b / min_b +
                           bound.floor_both / products / (min_a * min_b);
  return recombination_rounds(program.at("schedule")) ? unrounded + unit_roundoff * (1 + unrounded)
                                                      : unrounded;
}

template <class T>
std::optional<int> SchemeRows<T>::proved_dynamic_range(const Json& program,
                                                       const measure::BoundCoefficients& bound) const {
  using Limits = std::numeric_limits<T>;
  const Json& split_a = program.at("split_a");
  const Json& split_b = program.at("split_b");
  // Returns the dynamic range of the window. For an integer format, whose window has no lower end, it is the
  // dynamic range of all numbers of the type. For a split that does not scale vectors it is -1.
  const auto window_range = [](const Json& split) {
    const measure::SplitWindow window = measure::split_window(description_of(split));
    if (!window.scaled) return -1;
    return window.integer ? Limits::max_exponent - Limits::min_exponent + Limits::digits
                          : window.dynamic_range;
  };
  for (int range = std::min(window_range(split_a), window_range(split_b)); range >= 0; --range) {
    if (bound_for_smallest(program, bound, smallest_below_largest(split_a, range),
                           smallest_below_largest(split_b, range)) <= contract_.coefficient)
      return range;
  }
  return std::nullopt;
}

template <class T>
Bound SchemeRows<T>::bound_of(const Json& program, const Json& coefficients, bool in_window,
                              const std::vector<measure::ElementError>& elements) const {
  Bound bound{coefficients_of(coefficients), {}, {}};
  if (!in_window) return bound;
  const Json& split_a = program.at("split_a");
  const Json& split_b = program.at("split_b");
  bound.dynamic_range_bound = bound_for_smallest(
      program, bound.coefficients, smallest_element(split_a, facts_a_), smallest_element(split_b, facts_b_));
  const auto norms_a = measure::vector_norms(sample_.a(), measure::split_window(description_of(split_a)));
  const auto norms_b = measure::vector_norms(sample_.b(), measure::split_window(description_of(split_b)));
  bound.sample_bound = largest_of_sample<T>(bound.coefficients, norms_a, norms_b, elements);
  return bound;
}

template <class T>
SchemeRow SchemeRows<T>::row(const std::string& scheme) {
  const SchemeRun run = sample_.run(scheme, engine_);
  SchemeRow row;
  row.scheme = scheme;
  row.refusal = run.refusal;
  if (run.refusal.empty()) {
    row.errors = run.errors;
    row.meets_contract = meets(run.errors, contract_);
  }
  if (scheme == "native" || run.plan.is_null()) return row;
  const Json& candidate = run.plan.at("candidates").at(0);
  row.program = candidate.at("program");
  row.k = a_.columns;
  row.accumulator = cell(candidate, "accumulator");
  Json coefficients = candidate.at("bound_in_window");
  // A scheme that adapts itself to the operands reports the splits that ran and their bound.
  const Json adapted = run.report.is_null() ? Json() : run.report.at("adapted");
  if (!adapted.is_null()) {
    row.program["split_a"] = adapted.at("split_a");
    row.program["split_b"] = adapted.at("split_b");
    coefficients = adapted.at("bound_in_window");
  }
  row.retained_a = retained(measure::Side::a, row.program.at("split_a"));
  row.retained_b = retained(measure::Side::b, row.program.at("split_b"));
  row.window = measure::split_window(description_of(row.program.at("split_a")));
  row.in_window =
      is_in_window(row.program.at("split_a"), facts_a_) && is_in_window(row.program.at("split_b"), facts_b_);
  row.bound = bound_of(row.program, coefficients, *row.in_window, run.elements);
  row.proved_dynamic_range = proved_dynamic_range(row.program, row.bound->coefficients);
  row.proved = row.bound->dynamic_range_bound && *row.bound->dynamic_range_bound <= contract_.coefficient;
  return row;
}

template class SchemeRows<float>;
template class SchemeRows<double>;

Json SchemeRow::k_block() const {
  if (program.is_null()) return nullptr;
  return program.at("schedule").at("k_block");
}

Json row_document(const SchemeRow& row) {
  Json document = {
      {"scheme", row.scheme},
      {"refusal", row.refusal},
      {"products", row.products()},
      {"k_block", row.k_block()},
      {"accumulator", row.accumulator.empty() ? Json() : Json(row.accumulator)},
      {"retained_bits", {{"a", retained_document(row.retained_a)}, {"b", retained_document(row.retained_b)}}},
      {"in_window", row.in_window ? Json(*row.in_window) : Json()},
      {"bound", nullptr},
      {"errors", nullptr},
      {"meets_contract", row.errors ? Json(row.meets_contract) : Json()},
      {"proved", row.proved}};
  if (row.bound) {
    const measure::BoundCoefficients& bound = row.bound->coefficients;
    document["bound"] = {{"relative", bound.relative},
                         {"floor_a", bound.floor_a},
                         {"floor_b", bound.floor_b},
                         {"floor_both", bound.floor_both},
                         {"of_spans", optional_number(row.bound->dynamic_range_bound)},
                         {"of_sample", optional_number(row.bound->sample_bound)}};
  }
  if (row.errors) {
    document["errors"] = {{"frobenius_relative", number(row.errors->frobenius_relative)},
                          {"max_componentwise", number(row.errors->max_componentwise)}};
  }
  return document;
}

}  // namespace kintsugi::tools
