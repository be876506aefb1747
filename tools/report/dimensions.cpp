#include "report/dimensions.hpp"

#include <charconv>
#include <set>

namespace kintsugi::tools {

namespace {

std::string size_text(const Json& row, const char* name) { return cell(row.at("problem"), name); }

double size_number(const Json& row, const char* name) { return row.at("problem").at(name).get<double>(); }

// Returns "64 x 64 x 256".
std::string sizes_of(const Json& row) {
  return fmt::format("{} x {} x {}", size_text(row, "m"), size_text(row, "n"), size_text(row, "k"));
}

// Returns the text, followed by the type unless that is fp32.
std::string with_type(const Json& row, const std::string& text) {
  return row_type(row) == "fp32" ? text : text + ", " + row_type(row);
}

// A distribution with its parameter: "offset:-4" is {"offset:P", -4}, and "type3" is {"typeP", 3}.
struct ParametricDistribution {
  std::string family;
  std::optional<double> parameter;
};

ParametricDistribution distribution_of(const Json& row) {
  const std::string text = cell(row, "distribution");
  const auto colon = text.find(':');
  if (colon != std::string::npos)
    return {text.substr(0, colon) + ":P", parse_number("distribution", text.substr(colon + 1))};
  if (text.starts_with("type")) return {"typeP", parse_number("distribution", text.substr(4))};
  return {text, std::nullopt};
}

// Returns the words between colons after the scheme's name.
std::vector<std::string> parameters_of(const std::string& scheme) {
  std::vector<std::string> words;
  for (auto begin = scheme.find(':'); begin != std::string::npos;) {
    const auto end = scheme.find(':', begin + 1);
    words.push_back(scheme.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    begin = end;
  }
  return words;
}

// Returns the number of a word KEY=NUMBER; nothing for other words.
std::optional<double> number_of(std::string_view word, const std::string& key) {
  if (!word.starts_with(key + "=")) return std::nullopt;
  word.remove_prefix(key.size() + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Returns the parameter of the row's scheme.
std::optional<double> parameter_of(const Json& row, const std::string& key) {
  for (const auto& word : parameters_of(cell(row, "scheme"))) {
    const auto value = number_of(word, key);
    // block=0 is a block of all of k.
    if (value) return key == "block" && *value == 0 ? size_number(row, "k") : *value;
  }
  return std::nullopt;
}

std::string without_parameter(const std::string& scheme, const std::string& key) {
  std::string text = scheme.substr(0, scheme.find(':'));
  for (const auto& word : parameters_of(scheme)) {
    if (!number_of(word, key)) text += ":" + word;
  }
  return text;
}

std::string scheme_of(const Json& row) { return cell(row, "scheme"); }

Dimension parameter_dimension(const std::string& key) {
  return {.label = key + " of the scheme",
          .title_label = key,
          .logarithmic = key == "block",
          .value = [key](const Json& row) { return parameter_of(row, key); },
          .group = problem_text,
          .scheme = [key](const Json& row) { return without_parameter(cell(row, "scheme"), key); },
          .draws_native_as_line = true};
}

// Returns the dimension of slices per operand, for rows whose operands have equal numbers of slices.
Dimension slices_dimension() {
  return {
      .label = "slices of each operand",
      .title_label = "slices of each operand",
      .logarithmic = false,
      .value =
          [](const Json& row) {
            const auto slices = parameter_of(row, "a");
            return slices == parameter_of(row, "b") ? slices : std::nullopt;
          },
      .group = problem_text,
      .scheme =
          [](const Json& row) { return without_parameter(without_parameter(cell(row, "scheme"), "a"), "b"); },
      .draws_native_as_line = true};
}

// Returns the size if both are equal.
std::optional<double> equal_sizes(const Json& row, const char* x, const char* y) {
  if (size_text(row, x) != size_text(row, y)) return std::nullopt;
  return size_number(row, x);
}

Dimension against_k() {
  return {.label = "k",
          .title_label = "k",
          .logarithmic = true,
          .value = [](const Json& row) { return size_number(row, "k"); },
          .group =
              [](const Json& row) {
                return with_type(row, fmt::format("{}, m = {}, n = {}", cell(row, "distribution"),
                                                  size_text(row, "m"), size_text(row, "n")));
              },
          .scheme = scheme_of};
}

Dimension against_m_and_n() {
  return {.label = "m = n",
          .title_label = "m = n",
          .logarithmic = true,
          .value = [](const Json& row) { return equal_sizes(row, "m", "n"); },
          .group =
              [](const Json& row) {
                return with_type(row,
                                 fmt::format("{}, k = {}", cell(row, "distribution"), size_text(row, "k")));
              },
          .scheme = scheme_of};
}

Dimension against_squares() {
  return {.label = "m = n = k",
          .title_label = "m = n = k",
          .logarithmic = true,
          .value =
              [](const Json& row) {
                return size_text(row, "n") == size_text(row, "k") ? equal_sizes(row, "m", "n") : std::nullopt;
              },
          .group = [](const Json& row) { return with_type(row, cell(row, "distribution")); },
          .scheme = scheme_of};
}

Dimension against_distribution() {
  return {.label = "parameter of the distribution",
          .title_label = "P",
          .logarithmic = false,
          .value = [](const Json& row) { return distribution_of(row).parameter; },
          .group =
              [](const Json& row) {
                return with_type(row, fmt::format("{}, {}", distribution_of(row).family, sizes_of(row)));
              },
          .scheme = scheme_of};
}

}  // namespace

std::string row_type(const Json& row) {
  const std::string type = cell(row.at("problem"), "type");
  return type.empty() ? "fp32" : type;
}

std::string problem_text(const Json& row) {
  return with_type(row, cell(row, "distribution") + ", " + sizes_of(row));
}

std::vector<Dimension> dimensions_of(const std::vector<Json>& rows) {
  std::vector<Dimension> dimensions{against_k(), against_m_and_n(), against_squares(),
                                    against_distribution()};
  std::set<std::string> keys;
  for (const Json& row : rows) {
    for (const auto& word : parameters_of(cell(row, "scheme"))) keys.insert(word.substr(0, word.find('=')));
  }
  // The numbers of slices of A and B are one dimension.
  if (keys.erase("a") + keys.erase("b") == 2) dimensions.push_back(slices_dimension());
  for (const auto& key : keys) dimensions.push_back(parameter_dimension(key));
  return dimensions;
}

}  // namespace kintsugi::tools
