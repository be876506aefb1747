/* FP32 product through fp16 slices, called like cblas_sgemm.
 *
 * C = alpha * A * B^T + beta * C in column-major order, with room between the columns, by the scheme
 * fp16x3; then every element is compared with a double loop. Exit status 0: right; 1: wrong or failed.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "kintsugi/kintsugi.h"

enum { M = 129, N = 65, K = 500, LDA = M + 3, LDB = N, LDC = M + 1 };

/* Uniform in [-1, 1), the same on every machine. */
static float next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)(*state >> 40) * (1.0f / 8388608.0f) - 1.0f;
}

static float* random_matrix(size_t elements, uint64_t* state) {
  float* matrix = malloc(elements * sizeof *matrix);
  if (matrix == NULL) {
    fprintf(stderr, "sgemm: out of memory\n");
    exit(1);
  }
  for (size_t i = 0; i < elements; ++i) matrix[i] = next_random(state);
  return matrix;
}

static void require(kintsugi_status status, const char* call) {
  if (status == KINTSUGI_SUCCESS) return;
  fprintf(stderr, "sgemm: %s: %s: %s\n", call, kintsugi_status_name(status), kintsugi_last_error());
  exit(1);
}

int main(void) {
  uint64_t state = 1;
  float* a = random_matrix((size_t)LDA * K, &state);
  float* b = random_matrix((size_t)LDB * K, &state);
  float* c = random_matrix((size_t)LDC * N, &state);
  float* before = malloc((size_t)LDC * N * sizeof *before);
  if (before == NULL) return 1;
  for (size_t i = 0; i < (size_t)LDC * N; ++i) before[i] = c[i];
  const float alpha = 0.75f, beta = -2.0f;

  kintsugi_handle handle = NULL;
  require(kintsugi_create(&handle), "kintsugi_create");
  require(kintsugi_set(handle, "scheme", "fp16x3"), "kintsugi_set");
  require(kintsugi_sgemm(handle, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_T, M, N, K, alpha, a, LDA,
                         b, LDB, beta, c, LDC),
          "kintsugi_sgemm");

  /* A mistake is a status and a message, and C stays as it was: here ldc is less than m. */
  const kintsugi_status refused = kintsugi_sgemm(handle, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_T,
                                                 M, N, K, alpha, a, LDA, b, LDB, beta, c, M - 1);
  printf("refused as it should be: %s: %s\n", kintsugi_status_name(refused), kintsugi_last_error());
  kintsugi_destroy(handle);

  /* The bound of the accuracy fp32: (k + 8) units of 2^-24 for the product, one rounding each for alpha * AB,
   * beta * C and their sum. */
  double largest_error = 0, largest_share = 0;
  int wrong = refused != KINTSUGI_INVALID_ARGUMENT;
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < M; ++i) {
      double sum = 0, magnitude = 0;
      for (int l = 0; l < K; ++l) {
        const double product = (double)a[i + (size_t)l * LDA] * b[j + (size_t)l * LDB];
        sum += product;
        magnitude += fabs(product);
      }
      const double old = (double)beta * before[i + (size_t)j * LDC];
      const double error = fabs(c[i + (size_t)j * LDC] - (alpha * sum + old));
      const double bound = ((K + 8 + 2) * (alpha * magnitude) + 2 * fabs(old)) * ldexp(1, -24);
      if (error > largest_error) largest_error = error;
      if (error / bound > largest_share) largest_share = error / bound;
      if (!(error <= bound)) wrong = 1;
    }
    for (int i = M; i < LDC; ++i) {
      if (c[i + (size_t)j * LDC] != before[i + (size_t)j * LDC]) wrong = 1;
    }
  }
  printf("%d x %d x %d by fp16x3: max error %.3e, %.1f %% of the bound: %s\n", M, N, K, largest_error,
         100 * largest_share, wrong ? "WRONG" : "right");
  free(a);
  free(b);
  free(c);
  free(before);
  return wrong;
}
