#include "base/text/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kintsugi::core {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Optimal string alignment. Element (i, j) of the table is the distance of the first i characters of x to the
// first j characters of y. An exchange of two neighbors adds 1 to element (i - 2, j - 2).
std::size_t edit_distance(const std::string& x, const std::string& y) {
  const std::size_t columns = y.size() + 1;
  std::vector<std::size_t> table((x.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * columns + j]; };
  for (std::size_t i = 0; i <= x.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= y.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= x.size(); ++i) {
    for (std::size_t j = 1; j <= y.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (x[i - 1] == y[j - 1] ? 0 : 1);
      at(i, j) = std::min({replaced, at(i - 1, j) + 1, at(i, j - 1) + 1});
      const bool exchanged = i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1];
      if (exchanged) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

// Words of other libraries for an accepted name that they do not resemble.
struct Synonym {
  std::string_view word;
  std::string_view name;
};
constexpr std::array<Synonym, 12> synonyms{{{"gpu", "cuda"},
                                            {"device", "cuda"},
                                            {"cublas", "cuda"},
                                            {"host", "cpu"},
                                            {"openblas", "cpu"},
                                            {"float32", "fp32"},
                                            {"single", "fp32"},
                                            {"float", "fp32"},
                                            {"float64", "fp64"},
                                            {"double", "fp64"},
                                            {"double-double", "dd"},
                                            {"force", "emulate"}}};

// Returns the one of `names` for which the word is a synonym, or nothing.
std::optional<std::string> synonym_of(const std::string& word, const std::vector<std::string>& names) {
  for (const Synonym& synonym : synonyms) {
    if (synonym.word != word) continue;
    if (const auto name = std::find(names.begin(), names.end(), synonym.name); name != names.end())
      return *name;
  }
  return std::nullopt;
}

std::vector<std::string> split(std::string_view names) {
  std::vector<std::string> result;
  while (!names.empty()) {
    const auto comma = names.find(", ");
    result.emplace_back(names.substr(0, comma));
    names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 2);
  }
  return result;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 64;  // no name is longer, and the table is quadratic
  if (word.size() > longest) return std::nullopt;
  if (auto name = synonym_of(lower(word), names)) return name;
  std::size_t best = word.size() / 3 + 1;
  std::optional<std::string> nearest;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(lower(word), lower(name));
    if (distance >= best) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest ? "; did you mean " + *nearest + "?" : "";
}

std::string accepted_names(std::string_view word, std::string_view heading, std::string_view accepted) {
  const std::string hint = did_you_mean(word, split(accepted));
  std::string start(heading);
  if (!hint.empty() && start.front() >= 'a' && start.front() <= 'z')
    start.front() = static_cast<char>(start.front() - 'a' + 'A');
  return (hint.empty() ? "; " : hint + " ") + start + " " + std::string(accepted);
}

std::string accepted_names(std::string_view word, std::string_view heading,
                           const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return accepted_names(word, heading, list);
}

}  // namespace kintsugi::core
