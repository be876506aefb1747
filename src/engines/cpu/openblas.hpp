// OpenBLAS, opened at run time: the library has no load-time dependency on any BLAS.
#pragma once

#include <string>

namespace kintsugi::core {

// The one table of its functions. All pointers are set when reason is empty.
struct OpenBlas {
  using Gemm32 = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k,
                          const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                          const float* beta, float* c, const int* ldc);
  using Gemm64 = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k,
                          const double* alpha, const double* a, const int* lda, const double* b,
                          const int* ldb, const double* beta, double* c, const int* ldc);
  // Of pairs of float or double; alpha and beta too.
  using ComplexGemm = void (*)(const char* transa, const char* transb, const int* m, const int* n,
                               const int* k, const void* alpha, const void* a, const int* lda, const void* b,
                               const int* ldb, const void* beta, void* c, const int* ldc);
  Gemm32 sgemm = nullptr;
  Gemm64 dgemm = nullptr;
  ComplexGemm cgemm = nullptr;
  ComplexGemm zgemm = nullptr;
  void (*set_num_threads)(int) = nullptr;
  int (*get_num_threads)() = nullptr;

  std::string reason;   // why it is not there; empty when it is
  bool named = false;   // by the environment, itself or its kernel
  std::string details;  // configuration, kernel and path
};

// Opens the library at the first call: the one that KINTSUGI_CPU_BLAS names, else libopenblas.so.0, else the
// copy of the Python package scipy-openblas32 beside this library's own package; one that is loaded already
// is taken as it is. Its kernel is pinned before it is loaded: by itself OpenBLAS 0.3.21 takes half-rate AVX2
// kernels on AVX-512 CPUs that it does not know (Zen 5: 130 instead of 260 GF/s in FP32).
// KINTSUGI_CPU_BLAS_KERNEL names another kernel.
const OpenBlas& openblas();

// Holds OpenBLAS at a number of threads while it lives, then puts the program's number back. That
// number is one for the whole program, and OpenBLAS adds in another order when it divides a call, so
// whoever wants another number waits until the present holders are done. In a forked child the number is one.
class OpenBlasThreads {
 public:
  explicit OpenBlasThreads(int threads);
  ~OpenBlasThreads();
  OpenBlasThreads(const OpenBlasThreads&) = delete;
  OpenBlasThreads& operator=(const OpenBlasThreads&) = delete;
};

}  // namespace kintsugi::core
