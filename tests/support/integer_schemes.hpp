// Programs whose sums are integers or exact: their bits are the same everywhere.
#pragma once

#include <string>
#include <vector>

#include "tests/support/routes.hpp"

namespace kintsugi::test {

inline bool sums_exactly(const core::Program& program) {
  return program.recombination == core::Recombination::exact_sums ||
         program.sum_type(false) != core::SumType::f32;
}

inline std::vector<std::string> integer_schemes(const core::Engine& engine, core::OperandType type) {
  std::vector<std::string> names = schemes_on(engine, type);
  std::erase_if(names,
                [](const std::string& name) { return !sums_exactly(core::find_scheme(name)->program); });
  return names;
}

}  // namespace kintsugi::test
