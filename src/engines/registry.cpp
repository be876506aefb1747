#include "engines/registry.hpp"

#include <vector>

#include "base/threads.hpp"

namespace kintsugi::core {

#define KINTSUGI_ENGINE(name) const Engine& name##_engine();
#include "engines/engines.def"
#undef KINTSUGI_ENGINE

std::span<const Engine* const> all_engines() {
  static constinit MadeOnce<std::vector<const Engine*>> engines([] {
    return std::vector<const Engine*>{
#define KINTSUGI_ENGINE(name) &name##_engine(),
#include "engines/engines.def"
#undef KINTSUGI_ENGINE
    };
  });
  return engines.get();
}

const Engine* find_engine(std::string_view name) {
  for (const Engine* engine : all_engines()) {
    if (engine->name() == name) return engine;
  }
  return nullptr;
}

std::string engine_names() {
  std::string names;
  for (const Engine* engine : all_engines()) {
    if (!names.empty()) names += ", ";
    names += engine->name();
  }
  return names;
}

}  // namespace kintsugi::core
