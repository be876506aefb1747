// The registry of schemes: a new scheme is a header in this folder, its #include and its line here.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/threads.hpp"
#include "schemes/bf16x6_direct.hpp"
#include "schemes/fp32_scaled.hpp"
#include "schemes/fp32_unscaled.hpp"
#include "schemes/int52.hpp"
#include "schemes/mixpert.hpp"
#include "schemes/ozaki2.hpp"
#include "schemes/ozaki_fp.hpp"
#include "schemes/ozaki_int8.hpp"
#include "schemes/program.hpp"
#include "schemes/quantensor.hpp"
#include "schemes/split_n.hpp"
#include "schemes/superaccumulator.hpp"

namespace kintsugi::core {

namespace {

// One line a scheme.
// clang-format off
constexpr std::array registry{
    &schemes::fp16,
    &schemes::bf16,
    &schemes::tf32,
    &schemes::markidis,
    &schemes::egemm,
    &schemes::ootomo,
    &schemes::ootomo_tf32,
    &schemes::legemm,
    &schemes::h2sgemm,
    &schemes::h2sgemm_element,
    &schemes::tf32x3,
    &schemes::bf16x3,
    &schemes::fp16x3,
    &schemes::fp16x3_wide,
    &schemes::bf16x6_direct,
    &schemes::bf16x6,
    &schemes::bf16x9,
    &schemes::split_n,
    &schemes::int8x6,
    &schemes::quantensor,
    &schemes::mixpert_1,
    &schemes::mixpert_2,
    &schemes::mixpert_3,
    &schemes::mixpert_4,
    &schemes::mixpert_full,
    &schemes::ozaki_fp16,
    &schemes::ozaki_fp64,
    &schemes::ozaki_int8,
    &schemes::int52,
    &schemes::ozaki2,
    &schemes::superaccumulator,
};
// clang-format on

}  // namespace

std::span<const Scheme* const> all_schemes() { return registry; }

namespace {

const Scheme* find_registered(std::string_view name) {
  for (const Scheme* scheme : registry) {
    if (scheme->name == name) return scheme;
  }
  return nullptr;
}

// Returns the parameters in a text "key=value:key=value".
std::vector<Parameter> read_parameters(std::string_view text) {
  std::vector<Parameter> parameters;
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const auto equals = std::min(item.find('='), item.size());
    parameters.push_back({item.substr(0, equals), item.substr(std::min(equals + 1, item.size()))});
  }
  return parameters;
}

Program configured(const Scheme& scheme, std::string_view text) {
  Program program = scheme.program;
  const std::vector<Parameter> parameters = read_parameters(text);
  constexpr Parameter nothing{};  // the refused parameter if the name ends with a colon
  const Parameter* refused = &nothing;
  if (!parameters.empty()) {
    refused = scheme.configure != nullptr ? scheme.configure(program, parameters) : &parameters.front();
  }
  if (refused != nullptr) {
    fail(Status::bad_setting, "scheme {} does not take \"{}={}\"; its parameters: {}", scheme.name,
         refused->key, refused->value, scheme.parameters.empty() ? "none" : scheme.parameters);
  }
  return program;
}

}  // namespace

std::optional<int> parse_parameter(std::string_view value, int min, int max) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) return std::nullopt;
  return number < min || number > max ? std::nullopt : std::optional(number);
}

const Scheme* find_scheme(std::string_view name) {
  const auto colon = name.find(':');
  const Scheme* base = find_registered(name.substr(0, colon));
  if (base == nullptr || colon == std::string_view::npos) return base;
  const auto lock = lock_shared_state();
  // Nothing is removed from this map, since plans point into it.
  static std::map<std::string, Scheme, std::less<>> configured_schemes;
  auto found = configured_schemes.find(name);
  if (found == configured_schemes.end()) {
    Scheme scheme = *base;
    scheme.program = configured(*base, name.substr(colon + 1));
    found = configured_schemes.emplace(name, scheme).first;
    found->second.name = found->first;
  }
  return &found->second;
}

std::string scheme_name(const Scheme& scheme, const SchemeParameters& parameters) {
  std::string name(scheme.name);
  if (parameters.moduli != 0) name += fmt::format(":moduli={}", parameters.moduli);
  if (parameters.scale != ScaleRule::exponent)
    name += fmt::format(":scale={}", scale_rule_name(parameters.scale));
  if (parameters.block != 0) name += fmt::format(":block={}", parameters.block);
  if (parameters.tile != 0) name += fmt::format(":tile={}", parameters.tile);
  return name;
}

Program fitted_program(const Scheme& scheme, Program program, OperandType type, std::int64_t k) {
  if (scheme.fit != nullptr && k > 0) scheme.fit(program, type, k);
  return program;
}

Program fitted_program(const Scheme& scheme, OperandType type, std::int64_t k) {
  return fitted_program(scheme, scheme.program, type, k);
}

std::string scheme_names() {
  std::string names;
  for (const Scheme* scheme : registry) {
    if (!names.empty()) names += ", ";
    names += scheme->name;
  }
  return names;
}

}  // namespace kintsugi::core
