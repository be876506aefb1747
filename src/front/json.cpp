#include "front/json.hpp"

#include "base/version.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

const char* recombination_name(Recombination recombination) {
  switch (recombination) {
    case Recombination::weighted: return "weighted";
    case Recombination::residues: return "residues";
    case Recombination::exact_sums: return "exact_sums";
    case Recombination::direct_sums: return "direct_sums";
    case Recombination::ozaki1: return "error_free";
  }
  return "";
}

Json types_json(const OperandTypes& types) {
  Json names = Json::array();
  for (const OperandType type : {OperandType::f32, OperandType::f64, OperandType::dd}) {
    if (types.contains(type)) names.push_back(type_name(type));
  }
  return names;
}

const char* rounding_name(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return "nearest-even";
    case Rounding::towards_zero: return "towards-zero";
    case Rounding::bit_cut: return "bit-cut";
  }
  return "";
}

// Returns the name of the kind in documents. The first two names are those of format version 1; the
// enumerators were renamed later.
const char* kind_name(SplitKind kind) {
  switch (kind) {
    case SplitKind::rounded_residuals: return "hi_lo";
    case SplitKind::grid_digits: return "fixed";
    case SplitKind::magnitude: return "magnitude";
    case SplitKind::magnitude_above: return "magnitude_above";
    case SplitKind::residues: return "residues";
    case SplitKind::successive: return "successive";
    case SplitKind::tiles: return "tiles";
    case SplitKind::direct_residuals: return "direct";
  }
  return "";
}

Json basis_json(const ComplexBasis& basis) {
  if (basis.empty()) return {};
  return {{"with_root", basis.with_root}, {"without", basis.without}};
}

Json schedule_json(const Schedule& schedule) {
  Json terms = Json::array();
  for (const Term& term : schedule.terms) {
    terms.push_back({{"a", term.a}, {"b", term.b}, {"group", term.group}, {"rescales", term.rescales}});
  }
  Json exponents = Json::array();
  for (int g = 0; g < schedule.groups; ++g) exponents.push_back(schedule.group_exponents[g]);
  return {{"terms", terms},
          {"groups", schedule.groups},
          {"k_block", schedule.k_block},
          {"k_step", schedule.k_step},
          {"k_segment", schedule.k_segment},
          {"most_halvings", schedule.most_halvings},
          {"joint", schedule.joint},
          {"rescale_exponent", schedule.rescale_exponent},
          {"group_exponents", exponents}};
}

Json bound_json(const ErrorBound& bound) {
  return {{"relative", bound.relative},
          {"floor_a", bound.floor_a},
          {"floor_b", bound.floor_b},
          {"floor_both", bound.floor_both}};
}

}  // namespace

Json json_document(const char* format, int format_version) {
  return {{"format", format}, {"format_version", format_version}, {"version", library_version}};
}

std::string text_of(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json split_json(const SplitRule& rule) {
  return {{"kind", kind_name(rule.kind)},
          {"format", rule.format->name},
          {"slices", rule.slices},
          {"first_rounding", rounding_name(rule.first_rounding)},
          {"residual_rounding", rounding_name(rule.residual_rounding)},
          {"residual_exponent", rule.residual_exponent},
          {"scale_vectors", rule.scale_vectors},
          {"top_exponent", rule.scale_vectors ? Json(rule.top_exponent) : Json()},
          {"complex_basis", basis_json(rule.complex_basis)},
          {"scales", rule.kind == SplitKind::residues ? Json(scale_rule_name(rule.scales)) : Json()},
          {"tile_vectors", rule.tile_depth > 0 ? Json(rule.tile_vectors) : Json()},
          {"tile_depth", rule.tile_depth > 0 ? Json(rule.tile_depth) : Json()}};
}

Json scheme_json(const Scheme& scheme, const std::string& name, const Program& program) {
  return {{"name", name},
          {"summary", scheme.summary},
          {"operands", types_json(scheme.operands)},
          {"split_a", split_json(program.split_a)},
          {"split_b", split_json(program.split_b)},
          {"schedule", schedule_json(program.schedule)},
          {"recombination", recombination_name(program.recombination)},
          {"products", program.schedule.terms.size()},
          {"parameters", scheme.parameters},
          {"bound", scheme.bound},
          {"window", scheme.window},
          {"source", scheme.source}};
}

Json matrix_unit_json(MatrixUnitState state) {
  switch (state) {
    case MatrixUnitState::steady: break;
    case MatrixUnitState::fast: return {{"state", "fast"}, {"source", "measured"}};
    case MatrixUnitState::slow: return {{"state", "slow"}, {"source", "measured"}};
    case MatrixUnitState::set_fast: return {{"state", "fast"}, {"source", "setting"}};
    case MatrixUnitState::set_slow: return {{"state", "slow"}, {"source", "setting"}};
    case MatrixUnitState::unknown: return {{"state", "unknown"}, {"source", "not measured"}};
  }
  return {};
}

Json candidate_json(const Candidate& candidate) {
  if (candidate.scheme == nullptr)
    return {{"scheme", "native"},
            {"accumulator", nullptr},
            {"largest_dynamic_range", nullptr},
            {"largest_mean_depth", nullptr},
            {"accepted_by_norms", false},
            {"checked", false},
            {"fixed_order", candidate.fixed_order}};
  return {{"scheme", candidate.scheme_name()},
          {"accumulator", accumulator_name(candidate.accumulator)},
          {"largest_dynamic_range",
           candidate.acceptance.any_range() ? Json() : Json(candidate.acceptance.dynamic_range)},
          {"largest_mean_depth",
           candidate.acceptance.mean_depth == 0 ? Json() : Json(candidate.acceptance.mean_depth)},
          {"accepted_by_norms", candidate.acceptance.by_norms()},
          {"checked", candidate.checked},
          {"fixed_order", candidate.accumulator != Accumulator::cublas}};
}

void add_bounds(Json& json, const Program& program, Accumulator accumulator, std::int64_t k) {
  constexpr bool inside_window = true;  // argument of error_bound(): operands are in the window of the split
  constexpr bool outside_window = false;
  json["bound_in_window"] = bound_json(error_bound(program, accumulator, k, inside_window, inside_window));
  json["bound_outside_window"] =
      bound_json(error_bound(program, accumulator, k, outside_window, outside_window));
}

}  // namespace kintsugi::core
