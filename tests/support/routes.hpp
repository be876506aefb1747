// All ways through the library for one type: every scheme of the registry by name, every contract and policy, on every
// engine that runs here. New schemes and engines come in by themselves.
#pragma once

#include <string>
#include <vector>

#include "engines/registry.hpp"
#include "plan/program.hpp"
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

// Schemes by name that the engine multiplies, the planner's variants included.
inline std::vector<std::string> schemes_on(const core::Engine& engine, core::OperandType type) {
  std::vector<std::string> names;
  for (const core::Scheme* scheme : core::all_schemes()) {
    const bool engineless = scheme->program.recombination == core::Recombination::exact_sums;
    if (!scheme->operands.contains(type)) continue;
    if (!engineless && engine.accumulators(scheme->program.format().id).empty()) continue;
    names.emplace_back(scheme->name);
    for (const std::string_view variant : scheme->variants)
      names.push_back(std::string(scheme->name) + ":" + std::string(variant));
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
