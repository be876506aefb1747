// OpenBLAS, opened at run time. So the library has no load-time dependency on a BLAS.
#pragma once

#include <string>

namespace kintsugi::core {

// Table of functions. All pointers are set if `reason` is empty.
struct OpenBlas {
  using Gemm32 = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k,
                          const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                          const float* beta, float* c, const int* ldc);
  using Gemm64 = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k,
                          const double* alpha, const double* a, const int* lda, const double* b,
                          const int* ldb, const double* beta, double* c, const int* ldc);
  // For complex matrices, as pairs of float or double; alpha and beta are such pairs, too.
  using ComplexGemm = void (*)(const char* transa, const char* transb, const int* m, const int* n,
                               const int* k, const void* alpha, const void* a, const int* lda, const void* b,
                               const int* ldb, const void* beta, void* c, const int* ldc);
  Gemm32 sgemm = nullptr;
  Gemm64 dgemm = nullptr;
  ComplexGemm cgemm = nullptr;
  ComplexGemm zgemm = nullptr;
  void (*set_num_threads)(int) = nullptr;
  int (*get_num_threads)() = nullptr;

  std::string reason;   // why it cannot be used; empty if it can
  bool named = false;   // true: the environment names the library or its kernel
  std::string details;  // configuration, kernel and path
};

// Opens OpenBLAS at the first call. The copies are tried in this order: the one that KINTSUGI_CPU_BLAS names;
// libopenblas.so.0; the copy of the Python package scipy-openblas32 beside this library's own package. A copy
// that is already loaded is used as it is. Otherwise OpenBLAS is opened with a kernel fixed by
// KINTSUGI_CPU_BLAS_KERNEL or by the CPU's instructions. Left to itself, OpenBLAS 0.3.21 uses AVX2 kernels at
// half the rate on AVX-512 CPUs that it does not know (Zen 5: 130 instead of 260 GF/s in FP32).
const OpenBlas& openblas();

// Holds OpenBLAS at a number of threads during its lifetime, and then restores the program's number. OpenBLAS
// has one number of threads for the whole program, and its order of additions depends on it. So a constructor
// that wants another number than the present holders waits until these are destroyed. In a forked child the
// number is always 1.
//
// OpenBLAS maps a buffer for each call under way and for each thread, and without room for one it ends the
// program or never returns. It keeps one for the first call at a time since it was opened. So under RLIMIT_AS
// further calls wait, or are made one after the other, and threads are not added, where there is no room.
class OpenBlasThreads {
 public:
  // `callers`: threads of this call that call OpenBLAS.
  explicit OpenBlasThreads(int threads, int callers = 1);
  ~OpenBlasThreads();
  OpenBlasThreads(const OpenBlasThreads&) = delete;
  OpenBlasThreads& operator=(const OpenBlasThreads&) = delete;

  // Threads of this call that may call OpenBLAS at once.
  int callers() const { return callers_; }

 private:
  int callers_;
};

}  // namespace kintsugi::core
