// The registry of schemes: a new one is a header in this folder, its include and its line here.
#include <array>
#include <string>

#include "plan/program.hpp"
#include "plan/schemes/fp16.hpp"
#include "plan/schemes/fp16x3.hpp"
#include "plan/schemes/fp16x3_wide.hpp"
#include "plan/schemes/markidis.hpp"

namespace kintsugi::core {

namespace {

constexpr std::array registry{
    &schemes::fp16,
    &schemes::markidis,
    &schemes::fp16x3,
    &schemes::fp16x3_wide,
};

}  // namespace

std::span<const Scheme* const> all_schemes() { return registry; }

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme* scheme : registry) {
    if (scheme->name == name) return scheme;
  }
  return nullptr;
}

std::string scheme_names() {
  std::string names;
  for (const Scheme* scheme : registry) {
    if (!names.empty()) names += ", ";
    names += scheme->name;
  }
  return names;
}

}  // namespace kintsugi::core
