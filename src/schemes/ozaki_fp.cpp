#include "schemes/ozaki_fp.hpp"

#include <algorithm>

namespace kintsugi::core::schemes {

namespace {

using Mode = Ozaki1Parameters::Mode;

bool set_mode(std::string_view value, Mode& mode) {
  constexpr std::array<std::string_view, 3> names{"dp", "sp", "cr"};
  constexpr std::array modes{Mode::dp, Mode::sp, Mode::cr};
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) return false;
  mode = modes[static_cast<std::size_t>(found - names.begin())];
  return true;
}

// Sets the parameter. Returns false if the scheme does not have it, or if its value is malformed.
bool set_parameter(const Parameter& parameter, Program& program) {
  Ozaki1Parameters& rules = program.ozaki1;
  const auto set_number = [&](int min, int max, auto& target) {
    const auto value = parse_parameter(parameter.value, min, max);
    if (value) target = *value;
    return value.has_value();
  };
  if (parameter.key == "mode") return set_mode(parameter.value, rules.mode);
  if (parameter.key == "slices") return set_number(1, Ozaki1Parameters::max_slices, rules.slices);
  if (parameter.key == "block") return set_number(128, 65536, rules.block);
  if (parameter.key == "k-block") return set_number(0, 65536, program.schedule.k_block);
  if (parameter.key == "grid") {
    program.split_a.sigma_grid = program.split_b.sigma_grid = parameter.value == "sigma";
    return parameter.value == "sigma" || parameter.value == "integer";
  }
  if (parameter.key == "fast") {
    rules.fast = parameter.value == "on";
    return parameter.value == "on" || parameter.value == "off";
  }
  return false;
}

// Returns the largest number of bits b with products * 4^b <= 2^limit.
int bits_for(std::int64_t products, int limit) {
  const int product_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(products - 1)));
  return (limit - product_bits) / 2;
}

}  // namespace

const Parameter* configure_ozaki1(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const auto is_same = [&](const Parameter& other) { return other.key == parameter.key; };
    const bool repeated = std::count_if(parameters.begin(), parameters.end(), is_same) > 1;
    if (repeated || !set_parameter(parameter, program)) return &parameter;
  }
  const Ozaki1Parameters& rules = program.ozaki1;
  if (rules.mode == Mode::cr) {
    for (const Parameter& parameter : parameters) {
      if (parameter.key == "slices" || parameter.key == "fast") return &parameter;
    }
  }
  if (rules.slices != 0) program.split_a.slices = program.split_b.slices = rules.slices;
  return nullptr;
}

void fit_ozaki1(Program& program, OperandType type, std::int64_t k) {
  Ozaki1Parameters& rules = program.ozaki1;
  if (rules.mode == Mode::by_operand_type) rules.mode = type == OperandType::f32 ? Mode::sp : Mode::dp;
  if (program.schedule.k_block == 0) program.schedule.k_block = 65536;
  const bool is_fp64 = program.format().id == FormatId::fp64;
  const int significand = is_fp64 ? 53 : 24;  // bits of the sums inside the engine
  const int bits_inside = bits_for(program.schedule.block_length(k), significand);
  // Outside the engine, sums over all k must stay below 2^62.
  const int bits = std::min({bits_inside, bits_for(k, 62), program.format().significand_bits});
  program.split_a.residual_exponent = program.split_b.residual_exponent = bits;
  const int max_slices = rules.slices != 0 ? rules.slices : Ozaki1Parameters::max_slices;
  rules.max_products =
      rules.slices != 0 && rules.fast ? max_slices * (max_slices + 1) / 2 : max_slices * max_slices;
}

}  // namespace kintsugi::core::schemes
