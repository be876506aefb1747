#include "lab/accuracy/methods.hpp"

#include <algorithm>

namespace kintsugi::tools {

namespace {

// Returns the format of a scheme's slices; "" for a scheme without products of an engine. The format is read
// from a plan, since parameters may select it.
std::string slice_format(const std::string& scheme, Type type) {
  const Handle handle = make_handle();
  const Json plan = describe(make_plan(handle.get(), {1, 1, 1}, {type, scheme, "reference", ""}));
  const Json& program = plan.at("candidates").at(0).at("program");
  return program.at("products") == 0 ? "" : cell(program.at("split_a"), "format");
}

// Returns the engine's accumulators for the format that `wanted` selects, by name or by "first" or "all".
// They have the engine's order.
std::vector<std::string> accumulators_of(const Json& engine, const std::string& format,
                                         const std::vector<std::string>& wanted) {
  std::vector<std::string> result;
  const auto names = engine.at("accumulators").find(format);
  if (names == engine.at("accumulators").end()) return result;
  for (const auto& name : *names) {
    const auto accumulator = name.get<std::string>();
    const bool is_first = name == names->front();
    if ((is_first && contains<std::string>(wanted, "first")) || contains<std::string>(wanted, "all") ||
        contains(wanted, accumulator))
      result.push_back(accumulator);
  }
  return result;
}

// Appends the methods that compute one scheme on operands of one type.
void add_methods(const Sweep& sweep, const Json& engines, const std::string& scheme, Type type,
                 std::vector<Method>& methods) {
  const bool is_native = scheme == "native";
  if (!is_native && !contains(schemes_for(type), without_parameters(scheme))) return;
  const std::string format = is_native ? "" : slice_format(scheme, type);
  for (const auto& engine : engines) {
    const std::string name = cell(engine, "name");
    if (!contains(sweep.engines, name)) continue;
    if (format.empty()) methods.push_back({type, scheme, name, ""});
    for (const auto& accumulator : accumulators_of(engine, format, sweep.accumulators))
      methods.push_back({type, scheme, name, accumulator});
  }
}

}  // namespace

std::vector<Method> methods_of(const Sweep& sweep) {
  const Json engines = describe_engines().at("engines");
  std::vector<Method> methods;
  for (const auto& scheme : sweep.schemes) {
    const std::size_t before = methods.size();
    for (const Type type : sweep.types) add_methods(sweep, engines, scheme, type, methods);
    if (methods.size() == before)
      fail("--schemes", "no engine of {} runs {} on {} with an accumulator of {}", joined(sweep.engines),
           scheme, joined(type_texts(sweep.types)), joined(sweep.accumulators));
  }
  return methods;
}

}  // namespace kintsugi::tools
