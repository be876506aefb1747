#include "engines/cuda/cublas.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/threads.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr std::array file_names{"libcublas.so.13", "libcublas.so.12"};
// Names of cuBLAS's files where the drop-in's libraries have cuBLAS's own names (docs/CUBLAS-DROP-IN.md,
// library path).
constexpr std::array names_behind_drop_in{"libcublas_real.so.13", "libcublas_real.so.12"};

// Opens the library of that name if it is loaded already; returns nullptr if it is not.
void* open_loaded(const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

// Opens a copy that is loaded already, or else the file that the setting names. The setting's default is the
// first of file_names and stands for all of them. Sets `file` to the name of the opened file, or of the last
// one that was tried.
void* open_library(std::string& file) {
  for (const auto& names : {names_behind_drop_in, file_names}) {
    for (const char* name : names) {
      file = name;
      if (void* library = open_loaded(name)) return library;
    }
  }
  const auto lock = lock_environment();
  const std::string setting = environment_only_value(SettingId::cublas);
  std::vector<std::string> names{setting};
  if (setting == file_names.front()) names.assign(file_names.begin(), file_names.end());
  for (const std::string& name : names) {
    file = name;
    if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

// Looks up a function. Returns its symbol if the library lacks it, else nullptr.
template <class Function>
const char* load(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  return function == nullptr ? symbol : nullptr;
}

// Looks up all functions. Returns the symbol of the first one that the library lacks, else nullptr.
const char* load_functions(void* library, Cublas& blas) {
  for (const char* missing :
       {load(library, blas.create, "cublasCreate_v2"), load(library, blas.version, "cublasGetVersion_v2"),
        load(library, blas.set_stream, "cublasSetStream_v2"),
        load(library, blas.set_workspace, "cublasSetWorkspace_v2"),
        load(library, blas.set_pointer_mode, "cublasSetPointerMode_v2"),
        load(library, blas.math_mode, "cublasGetMathMode"), load(library, blas.gemm, "cublasGemmEx_64"),
        load(library, blas.gemm_strided, "cublasGemmStridedBatchedEx_64"),
        load(library, blas.gemm_pointers, "cublasGemmBatchedEx_64"),
        load(library, blas.status_name, "cublasGetStatusName")}) {
    if (missing != nullptr) return missing;
  }
  return nullptr;
}

// True if the environment variable is set and is not 0.
bool enables_emulation(const char* variable) {
  const auto lock = lock_environment();
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}
bool enables_emulation_of_fp32() { return enables_emulation("CUBLAS_EMULATE_SINGLE_PRECISION"); }
bool enables_emulation_of_fp64() { return enables_emulation("CUBLAS_EMULATE_DOUBLE_PRECISION"); }

Cublas open_cublas() {
  Cublas blas;
  blas.emulates_fp32 = enables_emulation_of_fp32();
  blas.emulates_fp64 = enables_emulation_of_fp64();
  void* library = open_library(blas.file);
  if (library == nullptr) {
    const char* error = ::dlerror();
    blas.reason = fmt::format(
        "cuBLAS 12 or 13 cannot be opened ({}); it comes with a CUDA toolkit or with the Python package "
        "nvidia-cublas, and KINTSUGI_CUBLAS names its file",
        error != nullptr ? error : blas.file);
  } else if (const char* missing = load_functions(library, blas)) {
    blas.reason = fmt::format("{} has no function {}", blas.file, missing);
  }
  return blas;
}

}  // namespace

const Cublas& cublas() {
  static constinit MadeOnce library(open_cublas);
  return library.get();
}

ComputeType native_compute_type(BlasHandle handle, bool is_fp64) {
  // Bits of cublasMath_t: CUBLAS_FP32_EMULATED_BF16X9_MATH, CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH.
  constexpr int bf16x9_math = 4;
  constexpr int fixed_point_math = 8;
  const Cublas& blas = cublas();
  int mode = 0;
  check_blas(blas.math_mode(handle, &mode), "cublasGetMathMode");
  const bool is_emulation_enabled =
      is_fp64 ? blas.emulates_fp64 || (mode & fixed_point_math) != 0 || enables_emulation_of_fp64()
              : blas.emulates_fp32 || (mode & bf16x9_math) != 0 || enables_emulation_of_fp32();
  int version = 0;  // 0 is below all versions: without enabled emulation the default type is returned
  if (is_emulation_enabled) check_blas(blas.version(handle, &version), "cublasGetVersion");
  if (is_fp64) return version >= 130100 ? ComputeType::f64_pedantic : ComputeType::f64;
  return version >= 120900 ? ComputeType::f32_pedantic : ComputeType::f32;
}

void check_blas(int status, const char* what) {
  if (status == 0) return;
  const char* name = cublas().status_name(status);
  fail(status == allocation_failed ? Status::out_of_memory : Status::device_error, "{}: {}", what,
       name != nullptr ? name : "an unknown status");
}

}  // namespace kintsugi::core::cuda
