// Families of kernels, one of which runs: chosen once, by what the CPU can execute and the environment asks
// for.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "base/status.hpp"

namespace kintsugi::core {

template <class Kernels>
struct KernelChoice {
  const Kernels* kernels;
  std::string reason;  // why they are not those that were asked for; empty when they are
};

// By name among the families that this CPU can execute, quickest first; "auto" is the quickest. The last runs
// anywhere.
template <class Kernels>
KernelChoice<Kernels> choose_kernels(std::span<const Kernels* const> families, std::string_view name,
                                     std::string_view variable) {
  std::string names = "auto";
  for (const Kernels* kernels : families) {
    if (name == "auto" || name == kernels->name) return {kernels, {}};
    names += fmt::format(", {}", kernels->name);
  }
  return {families.back(), fmt::format("{} = \"{}\" asks for kernels that this CPU cannot execute; it has {}",
                                       variable, name, names)};
}

// What the environment's setting asks for now.
template <class Kernels>
KernelChoice<Kernels> choose_kernels(std::span<const Kernels* const> families, SettingId setting,
                                     std::string_view variable) {
  const auto lock = lock_environment();
  return choose_kernels(families, environment_only_value(setting), variable);
}

}  // namespace kintsugi::core
