#include "run/preload.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "support.hpp"

namespace kintsugi::tools {

std::string drop_in_library(const std::string& drop_in, const std::string& flag) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&kintsugi_version), &info) == 0 || info.dli_fname == nullptr)
    fail(flag, "the folder of libkintsugi is not known");
  const auto folder = std::filesystem::canonical(info.dli_fname).parent_path();
  const auto library = folder / fmt::format("lib{}.so.{}", drop_in, KINTSUGI_VERSION_MAJOR);
  if (!std::filesystem::exists(library))
    fail(flag, "there is no {}; it is built with -DKINTSUGI_DROP_IN=ON", library.string());
  return library.string();
}

std::string audit_library(const std::string& drop_in, const std::string& flag) {
  const std::filesystem::path library = drop_in_library(drop_in, flag);
  return (library.parent_path() / fmt::format("lib{}_audit.so", drop_in)).string();
}

// Refuses paths with spaces and colons. These characters separate names in LD_PRELOAD and cannot be quoted
// there.
std::string preload_of(const std::string& drop_in, const std::string& flag) {
  const std::string library = drop_in_library(drop_in, flag);
  if (library.find_first_of(" :") != std::string::npos)
    fail(flag, "the dynamic linker takes no space and no colon in LD_PRELOAD: \"{}\" has one", library);
  const char* before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? library : library + ":" + before;
}

}  // namespace kintsugi::tools
