// Schemes whose sums are integers or exact, so that their bits are the same on every engine.
#pragma once

#include <string>
#include <vector>

#include "tests/support/routes.hpp"

namespace kintsugi::test {

// False for ozaki-fp16 and ozaki-fp64, whose number of slices depends on the data and which refuse some;
// their own tests compare bits.
inline bool sums_exactly(const core::Program& program) {
  using core::Recombination;
  if (program.recombination == Recombination::exact_sums || program.recombination == Recombination::residues)
    return true;
  return program.recombination == Recombination::weighted && program.sum_type(false) != core::SumType::f32;
}

inline std::vector<std::string> integer_schemes(const core::Engine& engine, core::OperandType type) {
  std::vector<std::string> names = schemes_on(engine, type);
  std::erase_if(names,
                [](const std::string& name) { return !sums_exactly(core::find_scheme(name)->program); });
  return names;
}

}  // namespace kintsugi::test
