#include "next.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace kintsugi::blas {

namespace {

const void* base_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

bool is_own(const void* address) {
  return base_of(address) == base_of(reinterpret_cast<const void*>(&find_next));
}

// Returns the function of a library or of its dependencies; nullptr if there is none, or if the function
// found is this library's own.
void* find_in(void* library, const char* name) {
  void* found = ::dlsym(library, name);
  return found != nullptr && !is_own(found) ? found : nullptr;
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0')
          static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

void* find_in_loaded(const char* name) {
  for (const std::string& library : loaded_libraries()) {
    void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* found = find_in(handle, name);
    ::dlclose(handle);  // The library stays loaded: RTLD_NOLOAD has found it loaded.
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

void* find_next(const char* name) {
  if (void* found = ::dlsym(RTLD_NEXT, name)) return found;
  if (void* found = find_in_loaded(name)) return found;
  void* library = ::dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL);
  return library != nullptr ? find_in(library, name) : nullptr;
}

const char* loaded_blas() {
  for (const char* name : {"dgemm_", "cblas_dgemm", "dgemm_64_", "scipy_dgemm_64_", "scipy_cblas_dgemm64_"})
    if (const void* found = find_in_loaded(name)) return file_of(found);
  return "";
}

const char* file_of(const void* function) {
  Dl_info info{};
  const bool found = function != nullptr && ::dladdr(function, &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace kintsugi::blas
