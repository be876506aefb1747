#include "lab/accuracy/sweep.hpp"

#include <algorithm>
#include <charconv>

#include "tools/io/input_file.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/nearest_name.hpp"

namespace kintsugi::tools {

namespace {

std::string parse_distribution(const std::string& text) {
  try {
    return measure::to_text(measure::parse_distribution(text));
  } catch (const std::runtime_error& error) {
    fail("--distributions", "{}", error.what());
  }
}

void require_known(const std::string& name, const std::vector<std::string>& words,
                   const std::vector<std::string>& known) {
  for (const auto& word : words) {
    if (!contains(known, word))
      fail("--" + name, "\"{}\" is not known{}", word, measure::accepted_names(word, "accepted:", known));
  }
}

std::vector<Type> parse_types(const std::vector<std::string>& words) {
  require_known("types", words, {"fp32", "fp64"});
  std::vector<Type> types;
  for (const auto& word : words) types.push_back(word == "fp32" ? Type::float32 : Type::float64);
  return types;
}

// Checks names of schemes; the library checks their parameters when a plan is made.
void check_schemes(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const auto& word : words) names.push_back(without_parameters(word));
  require_known("schemes", names, schemes_and_native({Type::float32, Type::float64}));
}

void check_engines(const std::vector<std::string>& words) {
  std::vector<std::string> known;
  const Json engines = describe_engines();
  for (const auto& engine : engines.at("engines")) known.push_back(cell(engine, "name"));
  require_known("engines", words, known);
  for (const auto& engine : engines.at("engines")) {
    if (contains(words, cell(engine, "name")) && !engine.at("available").get<bool>())
      fail("--engines", "{} is not available: {}", cell(engine, "name"), cell(engine, "reason"));
  }
}

void check_accumulators(const std::vector<std::string>& words) {
  std::vector<std::string> known{"first", "all"};
  const Json engines = describe_engines();
  for (const auto& engine : engines.at("engines")) {
    for (const auto& [format, names] : engine.at("accumulators").items()) {
      for (const auto& name : names) add_once(known, name.get<std::string>());
    }
  }
  require_known("accumulators", words, known);
}

// Returns the text of a list item of a sweep plan: a number, a word, true or false.
std::string item_text(const std::string& file, const std::string& name, const Json& item) {
  if (item.is_string()) return item.get<std::string>();
  if (item.is_number_integer() || item.is_boolean()) return item.dump();
  fail(file, "\"{}\" holds {}, which is neither a word nor a whole number", name, item.dump());
}

// Returns the name of the list that a member of a sweep plan sets: "max-elements" for max_elements.
std::string list_of_member(const std::string& file, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  for (const auto& list : sweep_lists) {
    if (name == list.name) return name;
  }
  if (name == "histogram") return name;
  fail(file, "\"{}\" is not a member of a sweep", name);
}

// Returns the words of a list without repetitions. If the list is not given, `otherwise` replaces it.
std::vector<std::string> words_of(const SweepTexts& texts, const char* name,
                                  const std::vector<std::string>& otherwise) {
  const auto found = texts.find(name);
  std::vector<std::string> result;
  for (const auto& text : found != texts.end() ? found->second : otherwise) add_once(result, text);
  return result;
}

// Returns the only word of a list; fails if there are several.
std::string single_word(const SweepTexts& texts, const char* name, const char* otherwise) {
  const auto words = words_of(texts, name, {otherwise});
  if (words.size() != 1) fail(std::string("--") + name, "{} is not one value", joined(words));
  return words.front();
}

// Returns the shapes of --shapes, and all combinations of --m, --n and --k, each once. The latter have
// default values, but if none of them is given, only the shapes of --shapes are returned.
std::vector<Shape> shapes_of(const SweepTexts& texts) {
  std::vector<Shape> shapes;
  std::vector<std::string> seen;
  const auto add = [&](const Shape& shape) {
    if (contains(seen, shape_text(shape))) return;
    seen.push_back(shape_text(shape));
    shapes.push_back(shape);
  };
  for (const auto& text : words_of(texts, "shapes", {})) add(parse_shape(text));
  if (!shapes.empty() && !texts.contains("m") && !texts.contains("n") && !texts.contains("k")) return shapes;
  for (const auto& m : words_of(texts, "m", {"64"})) {
    for (const auto& n : words_of(texts, "n", {"64"})) {
      for (const auto& k : words_of(texts, "k", {"1", "4", "16", "64", "256", "1024"}))
        add({parse_size("--m", m, m), parse_size("--n", n, n), parse_size("--k", k, k)});
    }
  }
  return shapes;
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
    if ((is_first && contains<std::string>(wanted, "first")) || contains<std::string>(wanted, "all") ||
        contains(wanted, accumulator))
      result.push_back(accumulator);
  }
  return result;
}

// True if the scheme's proof holds for the accumulator, which need not be so for every one of the format.
bool takes(const Method& method) {
  const Handle handle = make_handle();
  try {
    make_plan(handle.get(), {1, 1, 1}, method);
  } catch (const LibraryError& error) {
    if (error.status() == KINTSUGI_NOT_SUPPORTED) return false;
    throw;
  }
  return true;
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
    for (const auto& accumulator : accumulators_of(engine, format, sweep.accumulators)) {
      const Method method{type, scheme, name, accumulator};
      // One that is named, and not all, is measured or refused.
      if (contains(sweep.accumulators, accumulator) || takes(method)) methods.push_back(method);
    }
  }
}

}  // namespace

SweepTexts read_sweep_plan(const std::string& file) {
  InputFile input(file);
  const Json plan = parse_or_discard(input.read_rest());
  if (!plan.is_object()) fail(file, "is not a JSON object");
  SweepTexts texts;
  for (const auto& [name, value] : plan.items()) {
    if (name == "description") continue;
    auto& list = texts[list_of_member(file, name)];
    if (!value.is_array()) {
      list.push_back(item_text(file, name, value));
      continue;
    }
    for (const auto& item : value) list.push_back(item_text(file, name, item));
    if (list.empty()) fail(file, "\"{}\" is empty", name);
  }
  return texts;
}

Sweep make_sweep(const SweepTexts& texts) {
  Sweep sweep;
  sweep.types = parse_types(words_of(texts, "types", {"fp32"}));
  sweep.schemes = words_of(texts, "schemes", schemes_and_native(sweep.types));
  check_schemes(sweep.schemes);
  sweep.engines = words_of(texts, "engines", {"reference"});
  check_engines(sweep.engines);
  sweep.accumulators = words_of(texts, "accumulators", {"first"});
  check_accumulators(sweep.accumulators);
  for (const auto& text : words_of(texts, "distributions", {"uniform"}))
    add_once(sweep.distributions, parse_distribution(text));
  sweep.shapes = shapes_of(texts);
  for (const auto& text : words_of(texts, "seeds", {"1"})) add_once(sweep.seeds, parse_seed("--seeds", text));
  const std::string max_elements = single_word(texts, "max-elements", "4096");
  sweep.max_elements = parse_size("--max-elements", max_elements, max_elements);
  const std::string histogram = single_word(texts, "histogram", "false");
  require_known("histogram", {histogram}, {"true", "false"});
  sweep.histogram = histogram == "true";
  return sweep;
}

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

Json settings_of(const Sweep& sweep) {
  Json shapes = Json::array();
  for (const Shape& shape : sweep.shapes) shapes.push_back(shape_text(shape));
  return {{"schemes", sweep.schemes},
          {"engines", sweep.engines},
          {"accumulators", sweep.accumulators},
          {"types", type_texts(sweep.types)},
          {"distributions", sweep.distributions},
          {"shapes", shapes},
          {"seeds", sweep.seeds},
          {"max_elements", sweep.max_elements},
          {"histogram", sweep.histogram}};
}

}  // namespace kintsugi::tools
