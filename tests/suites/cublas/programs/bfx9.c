/* Products of 8192 x 8192 matrices in FP32 that ask cuBLAS for its emulation by the compute type. Reads numbers of
 * products from stdin, and for each prints their seconds and the norm of a column of the result;
 * tests/suites/cublas/beside runs it. Build: cc -O2 bfx9.c -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcublas -lcudart -lm -o bfx9 */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 8192 };

static void check(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "bfx9: %s: status %d\n", what, status);
  exit(2);
}

static float* matrix(unsigned seed) {
  const size_t bytes = sizeof(float) * N * N;
  float *host = malloc(bytes), *device = NULL;
  check(host == NULL, "memory");
  for (size_t i = 0; i < (size_t)N * N; ++i) {
    seed = seed * 1664525u + 1013904223u;
    host[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
  check(cudaMalloc((void**)&device, bytes), "cudaMalloc");
  check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  free(host);
  return device;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(void) {
  int count = 0;
  cublasHandle_t handle;
  float *a = NULL, *b = NULL, *c = NULL;
  static float column[N];
  printf("\"ready\"\n");
  fflush(stdout);
  while (scanf("%d", &count) == 1 && count > 0) {
    const float one = 1, zero = 0;
    double squares = 0;
    if (a == NULL) {
      check(cublasCreate(&handle), "cublasCreate");
      a = matrix(1), b = matrix(2), c = matrix(3);
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const double begin = now();
    for (int i = 0; i < count; ++i)
      check(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one, a, CUDA_R_32F, N, b, CUDA_R_32F, N,
                         &zero, c, CUDA_R_32F, N, CUBLAS_COMPUTE_32F_EMULATED_16BFX9, CUBLAS_GEMM_DEFAULT),
            "cublasGemmEx");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const double seconds = (now() - begin) / count;
    check(cudaMemcpy(column, c, sizeof column, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int i = 0; i < N; ++i) squares += (double)column[i] * column[i];
    printf("{\"seconds\": %.9g, \"results\": [%.12g]}\n", seconds, sqrt(squares));
    fflush(stdout);
  }
  return 0;
}
