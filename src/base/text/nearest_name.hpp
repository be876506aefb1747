// The accepted name that is nearest to a misspelt one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::core {

// Returns the name for which `word` is a usual synonym ("gpu" for "cuda"); else that with the smallest edit
// distance to `word`, the first one if several have it. Edits are a
// character inserted, deleted or replaced, and two neighbors exchanged; case does not matter. Returns nothing
// if the distance exceeds a third of the word's length.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& names);

// "; did you mean fp16x3?", or "" if no name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// End of a message about an unknown word, "; did you mean fp16x3? The schemes are fp16, ...". If no name is
// near, it is "; the schemes are fp16, ...". `heading` is "the schemes are", `accepted` is the list of names,
// separated by ", ".
std::string accepted_names(std::string_view word, std::string_view heading, std::string_view accepted);
std::string accepted_names(std::string_view word, std::string_view heading,
                           const std::vector<std::string>& names);

}  // namespace kintsugi::core
