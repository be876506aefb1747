// The registry of schemes: a new one is a header in this folder, its include and its line here.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/status.hpp"
#include "plan/program.hpp"
#include "plan/schemes/bf16.hpp"
#include "plan/schemes/bf16x3.hpp"
#include "plan/schemes/bf16x6.hpp"
#include "plan/schemes/bf16x9.hpp"
#include "plan/schemes/egemm.hpp"
#include "plan/schemes/fp16.hpp"
#include "plan/schemes/fp16x3.hpp"
#include "plan/schemes/fp16x3_wide.hpp"
#include "plan/schemes/h2sgemm.hpp"
#include "plan/schemes/h2sgemm_element.hpp"
#include "plan/schemes/legemm.hpp"
#include "plan/schemes/markidis.hpp"
#include "plan/schemes/ootomo.hpp"
#include "plan/schemes/ootomo_tf32.hpp"
#include "plan/schemes/tf32.hpp"
#include "plan/schemes/tf32x3.hpp"

namespace kintsugi::core {

namespace {

constexpr std::array registry{
    &schemes::fp16,        &schemes::bf16,
    &schemes::tf32,        &schemes::markidis,
    &schemes::egemm,       &schemes::ootomo,
    &schemes::ootomo_tf32, &schemes::legemm,
    &schemes::h2sgemm,     &schemes::h2sgemm_element,
    &schemes::tf32x3,      &schemes::bf16x3,
    &schemes::fp16x3,      &schemes::fp16x3_wide,
    &schemes::bf16x6,      &schemes::bf16x9,
};

}  // namespace

std::span<const Scheme* const> all_schemes() { return registry; }

namespace {

const Scheme* find_base(std::string_view name) {
  for (const Scheme* scheme : registry) {
    if (scheme->name == name) return scheme;
  }
  return nullptr;
}

// Applies "key=value,key=value".
Program configured(const Scheme& scheme, std::string_view parameters) {
  Program program = scheme.program;
  while (!parameters.empty()) {
    const auto item = parameters.substr(0, parameters.find(','));
    parameters.remove_prefix(std::min(item.size() + 1, parameters.size()));
    const auto equals = std::min(item.find('='), item.size());
    const auto value = item.substr(std::min(equals + 1, item.size()));
    if (scheme.configure == nullptr || !scheme.configure(program, item.substr(0, equals), value)) {
      fail(Status::bad_setting, "scheme {} does not take \"{}\"; its parameters: {}", scheme.name, item,
           scheme.parameters.empty() ? "none" : scheme.parameters);
    }
  }
  return program;
}

}  // namespace

const Scheme* find_scheme(std::string_view name) {
  const auto colon = name.find(':');
  const Scheme* base = find_base(name.substr(0, colon));
  if (base == nullptr || colon == std::string_view::npos) return base;
  static std::mutex mutex;
  static std::map<std::string, Scheme, std::less<>> made;  // plans point into it: nothing is ever removed
  const std::lock_guard lock(mutex);
  auto found = made.find(name);
  if (found == made.end()) {
    Scheme scheme = *base;
    scheme.program = configured(*base, name.substr(colon + 1));
    found = made.emplace(name, scheme).first;
    found->second.name = found->first;
  }
  return &found->second;
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
