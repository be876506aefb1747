#include "symbol.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace kintsugi::drop_in {

namespace {

const void* base_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void* unless_own(void* found) { return found != nullptr && !is_own(found) ? found : nullptr; }

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0')
          static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

}  // namespace

bool is_own(const void* function) {
  static const char own = 0;
  return base_of(function) == base_of(&own);
}

void* find_behind(const char* name) { return unless_own(::dlsym(RTLD_NEXT, name)); }

void* find_in(void* library, const char* name) { return unless_own(::dlsym(library, name)); }

void* find_in_loaded(const char* name, bool (*is_searched)(std::string_view path)) {
  for (const std::string& path : loaded_libraries()) {
    if (!is_searched(path)) continue;
    void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* found = find_in(library, name);
    ::dlclose(library);  // The library stays loaded: RTLD_NOLOAD has found it loaded.
    if (found != nullptr) return found;
  }
  return nullptr;
}

const char* file_of(const void* function) {
  Dl_info info{};
  const bool found = function != nullptr && ::dladdr(function, &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace kintsugi::drop_in
