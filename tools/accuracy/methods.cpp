#include "accuracy/methods.hpp"

#include <algorithm>

namespace kintsugi::tools {

namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

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
    if ((is_first && contains(wanted, "first")) || contains(wanted, "all") || contains(wanted, accumulator))
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

Plan make_plan(kintsugi_handle handle, const Shape& shape, const Method& method) {
  // Environment variables are hidden, so that the method runs that the row names.
  const HiddenVariables hidden(
      {"KINTSUGI_SCHEME", "KINTSUGI_POLICY", "KINTSUGI_ACCURACY", "KINTSUGI_ENGINE", "KINTSUGI_ACCUMULATOR"});
  const kintsugi_problem problem = row_major_problem(shape, method.type);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.engine = method.engine.c_str();
  if (method.scheme == "native") {
    options.policy = "native";
    options.accuracy = type_text(method.type);
  } else {
    options.scheme = method.scheme.c_str();
    // Only the engine reference lets a call choose among accumulators.
    if (method.engine == "reference" && !method.accumulator.empty())
      options.accumulator = method.accumulator.c_str();
  }
  kintsugi_plan plan = nullptr;
  require(method.scheme, kintsugi_plan_create(handle, &problem, &options, &plan));
  return Plan(plan);
}

Json describe(const Plan& plan) {
  return read_description("plan", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_plan_describe(plan.get(), buffer, capacity, needed);
  });
}

kintsugi_problem row_major_problem(const Shape& shape, Type type) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.lda = shape.k;
  problem.ldb = problem.ldc = shape.n;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar =
      type == Type::float32 ? KINTSUGI_F32 : KINTSUGI_F64;
  problem.layout = KINTSUGI_ROW_MAJOR;
  return problem;
}

lab::SplitDescription description_of(const Json& split) {
  const auto word = [&](const char* name) -> std::string_view {
    return split.at(name).get_ref<const std::string&>();
  };
  lab::SplitDescription description{.format = word("format"),
                                    .slices = split.at("slices").get<int>(),
                                    .first_rounding = word("first_rounding"),
                                    .residual_rounding = word("residual_rounding"),
                                    .residual_exponent = split.at("residual_exponent").get<int>()};
  description.scale_vectors = split.at("scale_vectors").get<bool>();
  if (description.scale_vectors) description.top_exponent = split.at("top_exponent").get<int>();
  description.kind = word("kind");
  if (!split.at("tile_vectors").is_null()) {
    description.tile_vectors = split.at("tile_vectors").get<int>();
    description.tile_depth = split.at("tile_depth").get<int>();
  }
  return description;
}

}  // namespace kintsugi::tools
