// Levels that a sites file gives to the call sites of a module (KINTSUGI_CLANG_REPLACE).
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <string>

#include "tuner/sites/record.hpp"

namespace kintsugi::pass {

class Levels {
 public:
  // Reads the sites file that the environment variable KINTSUGI_CLANG_REPLACE names. Returns nullopt if it is
  // not set. If the file cannot be used, reports an error, with which the compilation fails.
  static std::optional<Levels> of_environment(llvm::Module& module);

  // Returns the level of the site; native if the file does not name it.
  sites::Level of(const sites::SiteRecord& site);

  // Warns of emulations for sites of this source file that of() has not been asked for. Sites of inline
  // functions may be in other files; `kintsugi sites --check` finds those that no file has.
  void warn_of_unknown_sites(llvm::Module& module) const;

 private:
  struct Rule {
    sites::Level level;
    bool is_used = false;
  };
  std::map<std::string, Rule> rules_;  // key: the site's name
};

// Prints a warning of the compiler, which -w and -Wno-backend-plugin hide.
void warn(llvm::Module& module, const std::string& message);

}  // namespace kintsugi::pass
