// Selection of a kernel family. It is made once, from the CPU's instructions and the environment's setting.
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
  std::string reason;  // why the setting's kernels are not these; empty if they are
};

// Returns the kernels with the name `name`; "auto" means the fastest. `families` are those that this CPU can
// execute, the fastest first; the last one runs on any CPU.
template <class Kernels>
KernelChoice<Kernels> choose_kernels(std::span<const Kernels* const> families, std::string_view name,
                                     std::string_view variable) {
  std::string names = "auto";
  for (const Kernels* kernels : families) {
    if (name == "auto" || name == kernels->name) return {kernels, {}};
    names += fmt::format(", {}", kernels->name);
  }
  return {families.back(),
          fmt::format("{} = \"{}\" names kernels that this CPU cannot execute; it can execute {}", variable,
                      name, names)};
}

// Returns the kernels that the environment's setting names now.
template <class Kernels>
KernelChoice<Kernels> choose_kernels(std::span<const Kernels* const> families, SettingId setting,
                                     std::string_view variable) {
  const auto lock = lock_environment();
  return choose_kernels(families, environment_only_value(setting), variable);
}

}  // namespace kintsugi::core
