#include "real.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::cublas {

namespace {

// True for the file names of cuBLAS. cuBLAS has the names with _real where stubs of this library have the
// names of cuBLAS (path.c).
bool is_cublas(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* name : {"libcublas.so", "libcublasLt.so", "libcublas_real.so", "libcublasLt_real.so"})
    if (file.starts_with(name)) return true;
  return false;
}

// True if `function` is one of this library's own. A stub with the name of cuBLAS needs this library, so that
// a look-up in the stub finds this library's functions first.
bool is_own(const void* function) {
  static const char own = 0;
  Dl_info of_function{}, of_this{};
  return ::dladdr(function, &of_function) != 0 && ::dladdr(&own, &of_this) != 0 &&
         of_function.dli_fbase == of_this.dli_fbase;
}

std::vector<std::string> loaded_cublas() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        if (info->dlpi_name != nullptr && is_cublas(info->dlpi_name))
          static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

}  // namespace

void* find_real(const char* name) {
  if (void* found = ::dlsym(RTLD_NEXT, name); found != nullptr && !is_own(found)) return found;
  for (const std::string& path : loaded_cublas()) {
    void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* found = ::dlsym(library, name);
    ::dlclose(library);  // The library stays loaded: it was loaded before dlopen().
    if (found != nullptr && !is_own(found)) return found;
  }
  return nullptr;
}

const char* file_of(const void* function) {
  Dl_info info{};
  const bool found = function != nullptr && ::dladdr(function, &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace kintsugi::cublas
