/* Compares sgemm_ and dgemm_ of the BLAS drop-in with those of the BLAS behind it, call by call in turn, for random
   shapes. Arguments: the drop-in, the BLAS, number of shapes, seed, and the share of the BLAS's time and the
   nanoseconds that a call may take more; a shape that takes more is measured again, since on a busy machine any may
   once. Prints a line for each shape: type m n k, the
   median time of the BLAS and the median of the differences of neighbouring measurements, in nanoseconds a call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*gemm)(const char*, const char*, const int*, const int*, const int*, const void*, const void*,
                     const int*, const void*, const int*, const void*, void*, const int*, size_t, size_t);

enum { rounds = 41, attempts = 5, largest = 640 };

static uint64_t state;
static unsigned below(unsigned end) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % end;
}

/* Half of the sides are at most 32, so that calls of less than a microsecond are among the shapes. */
static int side(void) { return 1 + (int)below(below(2) ? 32 : largest); }

static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void* x, const void* y) {
  const double a = *(const double*)x, b = *(const double*)y;
  return (a > b) - (a < b);
}
static double median(double* values) {
  qsort(values, rounds, sizeof *values, compare);
  return values[rounds / 2];
}

struct call {
  int m, n, k;
  const void *one, *zero;
  void *a, *b, *c;
};

static double time_of(gemm function, const struct call* call, int repeats) {
  const double start = nanoseconds();
  for (int i = 0; i < repeats; ++i)
    function("N", "N", &call->m, &call->n, &call->k, call->one, call->a, &call->m, call->b, &call->k,
             call->zero, call->c, &call->m, 1, 1);
  return (nanoseconds() - start) / repeats;
}

struct comparison {
  double native, difference;
};

static struct comparison compare_calls(gemm own, gemm next, const struct call* call, int repeats) {
  double native[rounds], difference[rounds];
  for (int round = 0; round < rounds; ++round) {
    double own_time = 0;
    if (round % 2 == 0) own_time = time_of(own, call, repeats);
    native[round] = time_of(next, call, repeats);
    if (round % 2 != 0) own_time = time_of(own, call, repeats);
    difference[round] = own_time - native[round];
  }
  return (struct comparison){median(native), median(difference)};
}

static gemm function_of(void* library, char type) {
  const char name[] = {type, 'g', 'e', 'm', 'm', '_', '\0'};
  gemm found;
  *(void**)&found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "%s is not there\n", name), exit(1);
  return found;
}

static void* open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return library;
}

int main(int count, char** words) {
  if (count != 7) return fprintf(stderr, "usage: overhead DROP-IN BLAS SHAPES SEED SHARE NANOSECONDS\n"), 2;
  const double share = atof(words[5]), allowed = atof(words[6]);
  static const float single_one = 1, single_zero = 0;
  static const double double_one = 1, double_zero = 0;
  void *behind = open_library(words[2]), *drop_in = open_library(words[1]);
  state = (uint64_t)atoll(words[4]);
  const size_t bytes = (size_t)largest * largest * sizeof(double);
  struct call call = {0, 0, 0, NULL, NULL, malloc(bytes), malloc(bytes), malloc(bytes)};
  for (int shape = 0; shape < atoi(words[3]); ++shape) {
    const char type = below(2) ? 's' : 'd';
    call.m = side(), call.n = side(), call.k = side();
    call.one = type == 's' ? (const void*)&single_one : &double_one;
    call.zero = type == 's' ? (const void*)&single_zero : &double_zero;
    memset(call.a, 0x3f, bytes), memset(call.b, 0x3f, bytes);
    const gemm own = function_of(drop_in, type), next = function_of(behind, type);
    time_of(own, &call, 3), time_of(next, &call, 3);
    const double once = time_of(next, &call, 3);
    const int repeats = once > 100e3 ? 1 : (int)(100e3 / once) + 1;
    struct comparison result;
    int attempt = 0;
    do result = compare_calls(own, next, &call, repeats);
    while (++attempt < attempts && result.difference > share * result.native + allowed);
    printf("%cgemm %d %d %d %.1f %.1f\n", type, call.m, call.n, call.k, result.native, result.difference);
    fflush(stdout);
  }
  return 0;
}
