#include "level.hpp"

#include <cstdlib>

namespace kintsugi::sites {

namespace {

bool is_accuracy(const std::string& text) {
  for (const char* name : {"fp32", "fp64", "dd", "exact", "reproducible"})
    if (text == name) return true;
  char* end = nullptr;
  const double tolerance = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && tolerance > 0 && tolerance < 1;
}

}  // namespace

bool Level::is_native() const {
  return policy == "native" || scheme == "native" || (scheme.empty() && accuracy.empty() && policy.empty());
}

std::string mistake_in(const Level& level) {
  if (!level.accuracy.empty() && !is_accuracy(level.accuracy))
    return "accuracy = \"" + level.accuracy +
           "\" is not accepted; accepted: fp32, fp64, dd, exact, reproducible, or a tolerance such as 1e-10";
  const std::string& policy = level.policy;
  if (!policy.empty() && policy != "auto" && policy != "emulate" && policy != "native")
    return "policy = \"" + policy + "\" is not accepted; accepted: auto, emulate, native";
  if (policy == "native" && !(level.scheme + level.accuracy).empty())
    return "policy native takes neither scheme nor accuracy";
  if (!level.scheme.empty() && !policy.empty()) return "a scheme takes no policy";
  return "";
}

std::string level_text(const Level& level) {
  if (level.is_native()) return "native";
  std::string text = level.scheme;
  const auto add = [&text](const char* option, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : ", ") + (option + value);
  };
  add("accuracy ", level.accuracy);
  add("policy ", level.policy);
  return text;
}

}  // namespace kintsugi::sites
