// What a scheme may lose on an engine, for tests of its results.
#pragma once

#include "engines/registry.hpp"
#include "plan/bound.hpp"
#include "plan/program.hpp"

namespace kintsugi::test {

// Coefficient of (|A||B|)_ij inside the windows, the last rounding to fp32 included.
inline double coefficient(const std::string& scheme, const std::string& engine, std::int64_t k) {
  const core::Program& program = core::find_scheme(scheme)->program;
  const auto accumulator = core::find_engine(engine)->accumulators(program.format().id).front();
  return core::error_bound(program, accumulator, k, true, true).relative * (1 + 0x1p-20) + 0x1p-24;
}

// What an element below the window of an unscaled split can lose: fp16's is the largest of all.
inline constexpr double unscaled_floor = 0x1p-23;

}  // namespace kintsugi::test
