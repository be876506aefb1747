// Programs whose sums are integers or exact: their bits are the same everywhere.
#pragma once

#include <string>
#include <vector>

#include "tests/support/routes.hpp"

namespace kintsugi::test {

inline bool sums_exactly(const core::Program& program) {
  return program.recombination == core::Recombination::exact_sums || program.sum_type() == core::SumType::i64;
}

// By name, with parameters besides the planner's variants.
inline std::vector<std::string> integer_schemes(const core::Engine& engine, core::OperandType type) {
  std::vector<std::string> names = schemes_on(engine, type);
  for (const char* name :
       {"quantensor:slices=1", "quantensor:slices=3", "ozaki2:moduli=9", "ozaki2:moduli=49"}) {
    if (core::find_scheme(name)->operands.contains(type)) names.emplace_back(name);
  }
  std::erase_if(names,
                [](const std::string& name) { return !sums_exactly(core::find_scheme(name)->program); });
  return names;
}

}  // namespace kintsugi::test
