// Loop nests that are products of matrices, and main(), which prints their results.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { size = 24 };
typedef double Square[size][size];

void in_memory(int n, const double* a, const double* b, double* c) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

void in_variable(long m, long n, long k, const float* a, const float* b, float* c) {
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) {
      float sum = 0;
      for (long l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      c[i * n + j] = sum;
    }
}

void sum_in_the_middle(int n, Square a, Square b, Square c) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) c[i][j] += b[k][j] * a[i][k];
}

void set_to_zero(size_t n, const double* a, const double* b, double* c) {
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < n; ++i) {
      c[i + j * n] = 0;
      for (size_t k = 0; k < n; ++k) c[i + j * n] += a[i + k * n] * b[k + j * n];
    }
}

void transposed(size_t n, const double* a, const double* b, double* c) {
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = c[i * n + j];
      for (size_t k = 0; k < n; ++k) sum += a[k * n + i] * b[j * n + k];
      c[i * n + j] = sum;
    }
}

// No rows or columns of C are contiguous.
void every_second(size_t n, const double* a, const double* b, double* c) {
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[2 * (i * n + j)] += sum;
    }
}

static double a[2 * size * size], b[2 * size * size], c[2 * size * size];
static float single_a[size * size], single_b[size * size], single_c[size * size];

static void show(const char* name) {
  unsigned long hash = 5381;
  for (int i = 0; i < size * size; ++i) {
    unsigned long bits;
    unsigned single_bits;
    memcpy(&bits, c + i, sizeof bits);
    memcpy(&single_bits, single_c + i, sizeof single_bits);
    hash = (hash * 33 ^ bits) * 33 ^ single_bits;
  }
  double sum = 0;
  for (int i = 0; i < size * size; ++i) sum += c[i] * (i % 7) + (double)single_c[i] * (i % 5);
  printf("%s %lx %.4g\n", name, hash, sum);
}

int main(void) {
  for (int i = 0; i < 2 * size * size; ++i) a[i] = 1.0 / (i + 1), b[i] = 1.0 / (2 * i + 3), c[i] = i / 7.0;
  for (int i = 0; i < size * size; ++i) single_a[i] = (float)a[i], single_b[i] = (float)b[i];
  in_memory(size - 1, a, b, c), show("in_memory");
  in_memory(-1, a, b, c), show("nothing");
  in_variable(7, 9, 11, single_a, single_b, single_c), show("in_variable");
  in_variable(3, 3, 0, single_a, single_b, single_c), show("no_sum");
  sum_in_the_middle(size - 2, (void*)a, (void*)b, (void*)c), show("sum_in_the_middle");
  set_to_zero(size / 2, a, b, c), show("set_to_zero");
  set_to_zero(size / 2, c + 5, b, c), show("overlapping");
  transposed(size / 3, a, b, c), show("transposed");
  every_second(size / 2, a, b, c), show("every_second");
  return 0;
}
