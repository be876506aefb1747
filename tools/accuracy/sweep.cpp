#include "accuracy/sweep.hpp"

#include <algorithm>
#include <charconv>

#include "io/input_file.hpp"
#include "lab/generators.hpp"

namespace kintsugi::tools {

namespace {

std::string flag_of_list(const std::string& name) { return "--" + name; }

std::int64_t parse_size(const std::string& flag, std::string_view text, const std::string& whole) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    fail(flag, "\"{}\" is not a number from 1 up", whole);
  return value;
}

Shape parse_sizes(const std::string& text) {
  const auto first = text.find('x');
  const auto second = first == std::string::npos ? first : text.find('x', first + 1);
  if (second == std::string::npos)
    fail("--shapes", "\"{}\" is not of the form MxNxK, such as 128x128x64", text);
  const std::string_view view(text);
  return {parse_size("--shapes", view.substr(0, first), text),
          parse_size("--shapes", view.substr(first + 1, second - first - 1), text),
          parse_size("--shapes", view.substr(second + 1), text)};
}

std::string parse_distribution(const std::string& text) {
  try {
    return lab::to_text(lab::parse_distribution(text));
  } catch (const std::runtime_error& error) {
    fail("--distributions", "{}", error.what());
  }
}

template <class T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void require_known(const std::string& name, const std::vector<std::string>& words,
                   const std::vector<std::string>& known) {
  for (const auto& word : words) {
    if (std::find(known.begin(), known.end(), word) == known.end())
      fail(flag_of_list(name), "\"{}\" is not known; accepted: {}", word, joined(known));
  }
}

// h2sgemm of h2sgemm:sb=6; the library judges the parameters when the plan is made.
std::string without_parameters(const std::string& scheme) { return scheme.substr(0, scheme.find(':')); }

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  const Json schemes = describe_schemes();
  for (const auto& scheme : schemes.at("schemes")) {
    if (cell(scheme, "operands") == "fp32") names.push_back(cell(scheme, "name"));
  }
  names.emplace_back("native");
  return names;
}

void check_engines(const std::vector<std::string>& words) {
  std::vector<std::string> known;
  const Json engines = describe_engines();
  for (const auto& engine : engines.at("engines")) known.push_back(cell(engine, "name"));
  require_known("engines", words, known);
  for (const auto& engine : engines.at("engines")) {
    const bool wanted = std::find(words.begin(), words.end(), cell(engine, "name")) != words.end();
    if (wanted && !engine.at("available").get<bool>())
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

std::vector<Shape> all_shapes(const SweepTexts& texts) {
  const auto list = [&](const char* name, std::vector<std::string> otherwise) {
    const auto found = texts.find(name);
    return found != texts.end() ? found->second : otherwise;
  };
  std::vector<Shape> shapes;
  for (const auto& text : list("shapes", {})) shapes.push_back(parse_sizes(text));
  if (!shapes.empty() && !texts.contains("m") && !texts.contains("n") && !texts.contains("k")) return shapes;
  for (const auto& m : list("m", {"64"})) {
    for (const auto& n : list("n", {"64"})) {
      for (const auto& k : list("k", {"1", "4", "16", "64", "256", "1024"}))
        shapes.push_back({parse_size("--m", m, m), parse_size("--n", n, n), parse_size("--k", k, k)});
    }
  }
  return shapes;
}

// The text of a member of a plan: a number or a word.
std::string item_text(const std::string& file, const std::string& name, const Json& item) {
  if (item.is_string()) return item.get<std::string>();
  if (item.is_number_integer()) return item.dump();
  fail(file, "\"{}\" holds {}, which is no word and no whole number", name, item.dump());
}

std::string list_of_member(const std::string& file, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  for (const auto& list : sweep_lists) {
    if (name == list.name) return name;
  }
  fail(file, "\"{}\" is no member of a sweep", name);
}

std::vector<std::string> accumulators_of(const Json& engine, const std::string& format,
                                         const std::vector<std::string>& wanted) {
  std::vector<std::string> result;
  const auto names = engine.at("accumulators").find(format);
  if (names == engine.at("accumulators").end()) return result;
  const auto is_wanted = [&](const char* word) {
    return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
  };
  for (const auto& name : *names) {
    const auto text = name.get<std::string>();
    if ((result.empty() && is_wanted("first")) || is_wanted("all") || is_wanted(text.c_str()))
      result.push_back(text);
  }
  return result;
}

}  // namespace

std::string shape_text(const Shape& shape) { return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k); }

SweepTexts read_sweep_plan(const std::string& file) {
  InputFile input(file);
  const Json plan = Json::parse(input.read_rest(), nullptr, false);
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
  const auto list = [&](const char* name, std::vector<std::string> otherwise) {
    const auto found = texts.find(name);
    std::vector<std::string> result;
    for (const auto& text : found != texts.end() ? found->second : otherwise) add_once(result, text);
    return result;
  };
  Sweep sweep;
  sweep.schemes = list("schemes", scheme_names());
  for (const auto& scheme : sweep.schemes)
    require_known("schemes", {without_parameters(scheme)}, scheme_names());
  sweep.engines = list("engines", {"reference"});
  check_engines(sweep.engines);
  sweep.accumulators = list("accumulators", {"first"});
  check_accumulators(sweep.accumulators);
  for (const auto& text : list("distributions", {"uniform"}))
    add_once(sweep.distributions, parse_distribution(text));
  std::vector<std::string> seen;
  for (const Shape& shape : all_shapes(texts)) {
    if (std::find(seen.begin(), seen.end(), shape_text(shape)) != seen.end()) continue;
    seen.push_back(shape_text(shape));
    sweep.shapes.push_back(shape);
  }
  for (const auto& text : list("seeds", {"1"})) add_once(sweep.seeds, parse_seed(text));
  const auto max_entries = list("max-entries", {"4096"});
  if (max_entries.size() != 1) fail("--max-entries", "{} is not one number", joined(max_entries));
  sweep.max_entries = parse_size("--max-entries", max_entries.front(), max_entries.front());
  return sweep;
}

Json settings_of(const Sweep& sweep) {
  Json shapes = Json::array();
  for (const Shape& shape : sweep.shapes) shapes.push_back(shape_text(shape));
  return {{"schemes", sweep.schemes},
          {"engines", sweep.engines},
          {"accumulators", sweep.accumulators},
          {"distributions", sweep.distributions},
          {"shapes", shapes},
          {"seeds", sweep.seeds},
          {"max_entries", sweep.max_entries}};
}

std::vector<Method> methods_of(const Sweep& sweep) {
  const Json engines = describe_engines();
  const Json schemes = describe_schemes();
  std::vector<Method> methods;
  for (const auto& wanted : sweep.schemes) {
    const std::size_t before = methods.size();
    for (const auto& engine : engines.at("engines")) {
      const std::string name = cell(engine, "name");
      if (std::find(sweep.engines.begin(), sweep.engines.end(), name) == sweep.engines.end()) continue;
      if (wanted == "native") methods.push_back({wanted, name, ""});
      for (const auto& scheme : schemes.at("schemes")) {
        if (cell(scheme, "name") != without_parameters(wanted)) continue;
        const std::string format = cell(scheme.at("split_a"), "format");
        for (const auto& way : accumulators_of(engine, format, sweep.accumulators))
          methods.push_back({wanted, name, way});
      }
    }
    if (methods.size() == before)
      fail("--schemes", "no engine of {} runs {} with an accumulator of {}", joined(sweep.engines), wanted,
           joined(sweep.accumulators));
  }
  return methods;
}

}  // namespace kintsugi::tools
