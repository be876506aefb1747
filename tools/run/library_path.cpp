#include "run/library_path.hpp"

#include <cstdlib>
#include <filesystem>

#include "run/preload.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* flag = "--library-path";

// Makes the link `place` to `target`. Replaces an existing link.
void link(const fs::path& target, const fs::path& place) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(place, error))) fs::remove(place, error);
  fs::create_symlink(target, place, error);
  if (error) fail(flag, "cannot make {}: {}", place.string(), error.message());
}

// Makes links to the stub of a library and to the real library. Returns false and does nothing if there is no
// real library of this version.
bool link_library(const fs::path& folder, const fs::path& stubs, const fs::path& cublas,
                  const std::string& name, int version) {
  const std::string suffix = fmt::format(".so.{}", version);
  const fs::path real = cublas / (name + suffix);
  if (!fs::exists(real)) return false;
  const fs::path stub = stubs / fmt::format("{}", version) / (name + suffix);
  if (!fs::exists(stub)) fail(flag, "there is no {}; it is built with the drop-in", stub.string());
  link(stub, folder / (name + suffix));
  link(fs::canonical(real), folder / (name + "_real" + suffix));
  return true;
}

// Returns the folder of the real cuBLAS. The option names the folder; without it, KINTSUGI_CUBLAS names a
// file in the folder; without both, the folder is the toolkit's.
fs::path folder_of_cublas(const std::string& option) {
  if (!option.empty()) return option;
  const char* setting = std::getenv("KINTSUGI_CUBLAS");
  if (setting != nullptr && fs::path(setting).has_parent_path()) return fs::path(setting).parent_path();
  return "/usr/local/cuda/lib64";
}

}  // namespace

std::string make_library_path(const std::string& folder, const std::string& cublas) {
  const fs::path drop_in = drop_in_library("kintsugi_cublas", flag);
  const fs::path real = folder_of_cublas(cublas);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(flag, "cannot make {}: {}", folder, error.message());
  const fs::path whole = fs::canonical(folder);
  if (fs::equivalent(whole, real, error)) fail(flag, "{} is the folder of the real cuBLAS", folder);
  bool found = false;
  for (const int version : {12, 13}) {
    if (!link_library(whole, drop_in.parent_path() / "cublas_path", real, "libcublas", version)) continue;
    found = true;
    link_library(whole, drop_in.parent_path() / "cublas_path", real, "libcublasLt", version);
  }
  if (!found)
    fail(flag, "there is no libcublas.so.12 or .13 in {}; --cublas names its folder", real.string());
  for (const char* library : {"libkintsugi", "libkintsugi_cublas"}) {
    const std::string name = fmt::format("{}.so.{}", library, KINTSUGI_VERSION_MAJOR);
    link(drop_in.parent_path() / name, whole / name);
  }
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return before == nullptr || *before == '\0' ? whole.string() : whole.string() + ":" + before;
}

}  // namespace kintsugi::tools
