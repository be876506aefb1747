// Results that feed calls: chains of one product, of a loop, of a swap, of and a branch without one.
#include <stdio.h>
#include <stdlib.h>

void cblas_sgemm(int layout, int op_a, int op_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);

enum { n = 6, none = 111, column_major = 102 };

static void multiply_chain(const float* a, float* b, float* c, float* d) {
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, b, n);
  cblas_sgemm(column_major, none, none, n, n, n, 1, b, n, a, n, 0, c, n);
  cblas_sgemm(column_major, none, none, n, n, n, 1, b + n, n, c, n, 0.5F, d, n);
}

static void multiply_powers(const float* a, float* x, float* y, int count) {
  for (int i = 0; i < count; ++i) {
    cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, x, n, 0, y, n);
    float* const swapped = x;
    x = y;
    y = swapped;
  }
}

static void multiply_either(const float* a, float* x, float* y, int is_first) {
  if (is_first)
    cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  else
    cblas_sgemm(column_major, none, none, n, n, n, 1, x, n, a, n, 0, y, n);
}

int main(void) {
  float* const all = calloc(5 * n * n, sizeof(float));
  float *const a = all, *const b = a + n * n, *const c = b + n * n, *const d = c + n * n,
               *const e = d + n * n;
  for (int i = 0; i < n * n; ++i) a[i] = 1.0F / (float)(i + 3);
  multiply_chain(a, b, c, d);
  multiply_powers(a, d, e, 3);
  multiply_either(a, b, c, 1);
  multiply_either(a, b, d, 0);
  for (int i = 0; i < 5 * n * n; ++i) printf("%a\n", all[i]);
  free(all);
  return 0;
}
