/* Preloaded before the drop-in: prints a hash of HPL's solution, which HPL's check multiplies by the whole of A with
   alpha = -1. Rows of processes alone (Q = 1), so that each has all of x. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*product)(int, int, int, int, double, const double*, int, const double*, int, double, double*,
                        int);

void cblas_dgemv(int layout, int transposed, int m, int n, double alpha, const double* a, int lda,
                 const double* x, int incx, double beta, double* y, int incy) {
  const char* order = getenv("HPL_ORDER");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (order != NULL && rank != NULL && atoi(order) == n && atoi(rank) == 0 && alpha == -1 && incx == 1) {
    const unsigned char* bytes = (const unsigned char*)x;
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < (size_t)n * sizeof(double); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
    printf("bits %016llx\n", (unsigned long long)hash);
    fflush(stdout);
  }
  product next;
  *(void**)&next = dlsym(RTLD_NEXT, "cblas_dgemv");
  next(layout, transposed, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
