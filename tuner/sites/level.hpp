// Level of a call site: the rule that a sites file has for it (docs/schema/sites.schema.json).
#pragma once

#include <string>

namespace kintsugi::sites {

// Options of the calls of a site. An empty option is not set.
struct Level {
  std::string scheme;
  std::string accuracy;
  std::string policy;

  static Level native() { return {.scheme = "", .accuracy = "", .policy = "native"}; }

  bool operator==(const Level&) const = default;
  // True if the program's own library multiplies: the rule asks for it, or the rule is empty.
  bool is_native() const;
};

// Returns what is wrong with the rule; "" if it is accepted. Names of schemes are not checked.
std::string mistake_in(const Level& level);

// Returns the level for a reader: "native", "fp16x3", "accuracy 1e-5, policy emulate".
std::string level_text(const Level& level);

}  // namespace kintsugi::sites
