// The parameter `block`, which sets k_block. It is for schemes whose partial sums may be added outside the
// engine after any multiple of 64 inner indices.
#pragma once

#include <span>
#include <string_view>

#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr std::string_view block_parameter =
    "block=64...65536, a multiple of 64: indices of k whose sum is added outside the engine at once";

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_block(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const auto block = parse_parameter(parameter.value, 64, 65536);
    if (parameter.key != "block" || !block || *block % 64 != 0) return &parameter;
    program.schedule.k_block = *block;
    program.schedule.most_halvings = 0;
  }
  return nullptr;
}

inline bool takes_block(const Scheme& scheme) { return scheme.configure == &configure_block; }

// Returns the scheme's program with a k_block of `block` for all problems.
inline Program program_in_blocks(const Scheme& scheme, int block) {
  Program program = scheme.program;
  program.schedule.k_block = block;
  program.schedule.most_halvings = 0;
  return program;
}

}  // namespace kintsugi::core::schemes
