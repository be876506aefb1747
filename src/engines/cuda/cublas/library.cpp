#include "engines/cuda/cublas/library.hpp"

#include <dlfcn.h>

#include <array>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr std::array file_names{"libcublas.so.13", "libcublas.so.12"};

// One that is loaded already comes first; then the file that the environment names.
void* open_library(std::string& file) {
  for (const char* name : file_names) {
    file = name;
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  }
  const std::string named = environment_only_value(SettingId::cublas);
  std::vector<std::string> names{named};
  if (named == file_names.front()) names.assign(file_names.begin(), file_names.end());
  for (const std::string& name : names) {
    file = name;
    if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
const char* find(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  return function == nullptr ? symbol : nullptr;
}

// The first function that the library lacks, or nullptr.
const char* find_functions(void* library, Cublas& blas) {
  for (const char* missing :
       {find(library, blas.create, "cublasCreate_v2"), find(library, blas.version, "cublasGetVersion_v2"),
        find(library, blas.set_stream, "cublasSetStream_v2"),
        find(library, blas.set_workspace, "cublasSetWorkspace_v2"),
        find(library, blas.set_pointer_mode, "cublasSetPointerMode_v2"),
        find(library, blas.gemm, "cublasGemmEx_64"),
        find(library, blas.gemm_strided, "cublasGemmStridedBatchedEx_64"),
        find(library, blas.gemm_pointers, "cublasGemmBatchedEx_64"),
        find(library, blas.status_name, "cublasGetStatusName")}) {
    if (missing != nullptr) return missing;
  }
  return nullptr;
}

Cublas open_cublas() {
  Cublas blas;
  void* library = open_library(blas.file);
  if (library == nullptr) {
    const char* error = ::dlerror();
    blas.reason = fmt::format("cuBLAS 12 or 13 cannot be opened ({}); KINTSUGI_CUBLAS names its file",
                              error != nullptr ? error : blas.file);
  } else if (const char* missing = find_functions(library, blas)) {
    blas.reason = fmt::format("{} has no function {}", blas.file, missing);
  }
  return blas;
}

}  // namespace

const Cublas& cublas() {
  static const Cublas library = open_cublas();
  return library;
}

void check_blas(int status, const char* what) {
  if (status == 0) return;
  constexpr int allocation_failed = 3;
  const char* name = cublas().status_name(status);
  fail(status == allocation_failed ? Status::out_of_memory : Status::device_error, "{}: {}", what,
       name != nullptr ? name : "an unknown status");
}

}  // namespace kintsugi::core::cuda
