// The accepted name that a misspelt one stands for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::core {

// The name with the smallest edit distance to `word` (characters inserted, left out or replaced, or two
// neighbours exchanged, letter case apart), where that is at most a third of the word's length; the first of
// several.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& names);

// "; did you mean fp16x3?", or "" where no name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// The end of a message about an unknown word: "; did you mean fp16x3? The schemes are fp16, ...", or "; the
// schemes are fp16, ..." where no name is near. `heading` is "the schemes are", `accepted` the names,
// separated by ", ".
std::string accepted_names(std::string_view word, std::string_view heading, std::string_view accepted);
std::string accepted_names(std::string_view word, std::string_view heading,
                           const std::vector<std::string>& names);

}  // namespace kintsugi::core
