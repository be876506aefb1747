// Results that reach other calls only after they were copied, or transformed into other memory.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cblas_sgemm(int layout, int op_a, int op_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);

enum { n = 6, elements = n * n, none = 111, column_major = 102 };

static float* matrix(float start) {
  float* const values = calloc(elements, sizeof(float));
  for (int i = 0; i < elements; ++i) values[i] = start / (float)(i + 1);
  return values;
}

static float a[elements];

static void show(const float* values) {
  for (int i = 0; i < elements; ++i) printf("%a\n", values[i]);
}

static void copied(void) {
  float *const x = matrix(0), *const y = matrix(0), *const z = matrix(0);
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  memcpy(y, x, elements * sizeof(float));
  cblas_sgemm(column_major, none, none, n, n, n, 1, y, n, a, n, 0, z, n);
  show(z);
}

static void computed(void) {
  float *const x = matrix(0), *const y = matrix(0), *const z = matrix(0);
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  for (int i = 0; i < elements; ++i) y[i] = tanhf(2 * x[i] + 1);
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, y, n, 0, z, n);
  show(z);
}

static void transpose(const float* from, float* to) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) to[i + j * n] = from[j + i * n];
}

static float scaled(const float* values, int i) { return 0.5F * values[i]; }

static void in_functions(void) {
  float *const x = matrix(0), *const t = matrix(0), *const y = matrix(0), *const z = matrix(0);
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  transpose(x, t);
  for (int i = 0; i < elements; ++i) y[i] = scaled(t, i);
  cblas_sgemm(column_major, none, none, n, n, n, 1, y, n, a, n, 0, z, n);
  show(z);
}

static void by_a_sum(void) {
  float *const x = matrix(0), *const y = matrix(3), *const z = matrix(0);
  float sum = 0;
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  for (int i = 0; i < elements; ++i) sum += x[i];
  for (int i = 0; i < elements; ++i) y[i] /= sum;
  cblas_sgemm(column_major, none, none, n, n, n, 1, y, n, a, n, 1, z, n);
  show(z);
}

static void too_late(void) {
  float *const x = matrix(0), *const y = matrix(2), *const z = matrix(0);
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  cblas_sgemm(column_major, none, none, n, n, n, 1, y, n, a, n, 0, z, n);
  memcpy(y, x, elements * sizeof(float));
  show(z);
}

static void of_something_else(void) {
  float *const x = matrix(0), *const y = matrix(2), *const z = matrix(0);
  cblas_sgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, x, n);
  memcpy(y, a, elements * sizeof(float));
  cblas_sgemm(column_major, none, none, n, n, n, 1, y, n, a, n, 0, z, n);
  show(z);
}

// The product is in memory of the function's own.
static void layer(const float* x, const float* w, float* y) {
  float* const product = matrix(0);
  cblas_sgemm(column_major, none, none, n, n, n, 1, x, n, w, n, 0, product, n);
  for (int i = 0; i < elements; ++i) y[i] = tanhf(product[i]);
}

static void last(const float* x, const float* w, float* y) {
  float* const operand = matrix(0);
  memcpy(operand, x, elements * sizeof(float));
  cblas_sgemm(column_major, none, none, n, n, n, 1, operand, n, w, n, 0, y, n);
}

static void network(void) {
  float *const h = matrix(0), *const y = matrix(0);
  layer(a, a, h);
  last(h, a, y);
  show(y);
}

int main(void) {
  for (int i = 0; i < elements; ++i) a[i] = 1.0F / (float)(i + 3);
  copied();
  computed();
  in_functions();
  by_a_sum();
  too_late();
  of_something_else();
  network();
  return 0;
}
