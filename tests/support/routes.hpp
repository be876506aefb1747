// Lists every way to multiply matrices of one type: every scheme by name, every contract and policy, on every
// engine that runs here. New schemes and engines are included automatically.
#pragma once

#include <string>
#include <vector>

#include "engines/cuda/steps.hpp"
#include "engines/engine.hpp"
#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "split/maxima.hpp"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {

struct Route {
  std::string engine, scheme = {}, accuracy = {}, policy = {};

  GemmCase applied(GemmCase test) const {
    test.engine = engine;
    test.scheme = scheme;
    test.accuracy = accuracy;
    test.policy = policy;
    return test;
  }
  std::string name() const { return engine + " " + scheme + accuracy + " " + policy; }
};

// False for schemes that a device does not run on all operands. ozaki-fp16 and ozaki-fp64 have a fixed number
// of slices there, too few for some operands (tested by tests/gpu/calls/ozaki_test.cpp). Exponents per tile
// need real elements and some architectures (tests/gpu/calls/tiles_test.cpp).
inline bool has_steps(const core::Engine& engine, const core::Program& program) {
  return engine.host() != nullptr ||
         (program.recombination != core::Recombination::ozaki1 && program.schedule.tiles.depth == 0 &&
          !core::scales_by_maxima(program.split_a) &&
          (!program.schedule.is_direct || engine.multiplies_directly()));
}

// Names of the schemes that the engine runs, some also with parameters that change the program's structure.
inline std::vector<std::string> schemes_on(const core::Engine& engine, core::OperandType type) {
  std::vector<std::string> names;
  for (const core::Scheme* scheme : core::all_schemes()) {
    const bool needs_no_engine = scheme->program.recombination == core::Recombination::exact_sums;
    if (!scheme->operands.contains(type) || !has_steps(engine, scheme->program)) continue;
    if (!needs_no_engine && engine.accumulators(scheme->program.format().id).empty()) continue;
    names.emplace_back(scheme->name);
  }
  for (const char* name : {"quantensor:slices=1", "quantensor:slices=3", "quantensor:slices=3:scale=max",
                           "ozaki-int8:slices=2", "ozaki-int8:slices=8", "int52:words=2", "int52:words=4",
                           "ozaki2:moduli=9", "ozaki2:moduli=22", "ozaki2:moduli=34", "ozaki2:moduli=49"}) {
    const core::Scheme* scheme = core::find_scheme(name);
    if (scheme->operands.contains(type) && has_steps(engine, scheme->program) &&
        !engine.accumulators(scheme->program.format().id).empty())
      names.emplace_back(name);
  }
  return names;
}

inline std::vector<Route> all_routes(core::OperandType type) {
  std::vector<Route> routes;
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    const std::string name(engine->name());
    for (const std::string& scheme : schemes_on(*engine, type))
      routes.push_back({.engine = name, .scheme = scheme});
    for (const char* policy : {"auto", "emulate"})
      routes.push_back({.engine = name, .accuracy = "exact", .policy = policy});
    for (const char* policy : {"auto", "emulate", "native"})
      routes.push_back({.engine = name, .policy = policy});
  }
  return routes;
}

}  // namespace kintsugi::test
