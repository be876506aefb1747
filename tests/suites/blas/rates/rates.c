/* Compares cblas_dgemm of the BLAS drop-in with that of a BLAS, product by product in turn, on uniform matrices.
   Arguments: the drop-in, the BLAS, pairs of products, and orders. Its environment has the accuracy and the threads.
   Each pair changes the order of its two products. Prints a line for each order and layout: order, layout, the least
   times of the BLAS and of the drop-in in milliseconds, and the median of the pairs' ratios of rates. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*gemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                     double*, int);

enum { row_major = 101, column_major = 102, no_transpose = 111, most_pairs = 64 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void* x, const void* y) {
  const double a = *(const double*)x, b = *(const double*)y;
  return (a > b) - (a < b);
}

static gemm function_of(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror()), exit(1);
  gemm found;
  *(void**)&found = dlsym(library, "cblas_dgemm");
  if (found == NULL) fprintf(stderr, "%s has no cblas_dgemm\n", name), exit(1);
  return found;
}

static double* matrix(int order, uint64_t state) {
  const size_t count = (size_t)order * (size_t)order;
  double* elements = aligned_alloc(64, count * sizeof *elements);
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    elements[i] = (double)(int64_t)state * 0x1p-63;
  }
  return elements;
}

static double time_of(gemm function, int layout, int n, const double* a, const double* b, double* c) {
  const double start = seconds();
  function(layout, no_transpose, no_transpose, n, n, n, 1, a, n, b, n, 0, c, n);
  return seconds() - start;
}

static void measure(gemm own, gemm next, int layout, int n, int pairs) {
  double *a = matrix(n, 1), *b = matrix(n, 2), *c = matrix(n, 3);
  double least_own = 1e9, least_next = 1e9, ratios[most_pairs];
  time_of(own, layout, n, a, b, c), time_of(next, layout, n, a, b, c);
  for (int pair = 0; pair < pairs; ++pair) {
    double of_own = 0;
    if (pair % 2 == 0) of_own = time_of(own, layout, n, a, b, c);
    const double of_next = time_of(next, layout, n, a, b, c);
    if (pair % 2 != 0) of_own = time_of(own, layout, n, a, b, c);
    ratios[pair] = of_next / of_own;
    if (of_own < least_own) least_own = of_own;
    if (of_next < least_next) least_next = of_next;
  }
  qsort(ratios, (size_t)pairs, sizeof *ratios, compare);
  printf("%d %s %.3f %.3f %.3f\n", n, layout == row_major ? "row" : "column", 1e3 * least_next,
         1e3 * least_own, ratios[pairs / 2]);
  fflush(stdout);
  free(a), free(b), free(c);
}

int main(int count, char** words) {
  const int pairs = count > 4 ? atoi(words[3]) : 0;
  if (pairs < 1 || pairs > most_pairs)
    return fprintf(stderr, "usage: rates DROP-IN BLAS PAIRS ORDER...\n"), 2;
  const gemm next = function_of(words[2]), own = function_of(words[1]);
  for (int i = 4; i < count; ++i) {
    measure(own, next, column_major, atoi(words[i]), pairs);
    measure(own, next, row_major, atoi(words[i]), pairs);
  }
  return 0;
}
