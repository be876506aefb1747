// Results that feed calls in other functions: through arguments, a returned pointer and a member of a struct.
#include <stdio.h>
#include <stdlib.h>

void cblas_dgemm(int layout, int op_a, int op_b, int m, int n, int k, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc);

enum { n = 6, none = 111, column_major = 102 };

struct State {
  int order;
  double *first, *second;
};

static double* matrix(double start) {
  double* const values = malloc(n * n * sizeof(double));
  for (int i = 0; i < n * n; ++i) values[i] = start / (i + 1);
  return values;
}

static void square(const double* a, double* c) {
  cblas_dgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, c, n);
}

static void cube(const double* a, const double* squared, double* c) {
  cblas_dgemm(column_major, none, none, n, n, n, 1, squared, n, a, n, 0, c, n);
}

// The result is in memory of its own.
static double* product(const double* a, const double* b) {
  double* const c = matrix(0);
  cblas_dgemm(column_major, none, none, n, n, n, 1, a, n, b, n, 0, c, n);
  return c;
}

static void step_first(struct State* state, const double* a) {
  cblas_dgemm(column_major, none, none, n, n, n, 1, a, n, a, n, 0, state->first, n);
}

static void step_second(struct State* state, const double* a) {
  cblas_dgemm(column_major, none, none, n, n, n, 1, state->first, n, a, n, 0, state->second, n);
}

static void show(const char* name, const double* values) {
  printf("%s", name);
  for (int i = 0; i < n * n; ++i) printf(" %a", values[i]);
  puts("");
}

int main(void) {
  double* const a = matrix(1);
  double* const other = matrix(2);
  double* const squared = matrix(0);
  double* const cubed = matrix(0);
  square(a, squared);
  cube(a, squared, cubed);
  square(other, other + 0);
  double* const from_product = product(cubed, a);
  double* const last = product(from_product, a);
  struct State state = {n, matrix(0), matrix(0)};
  step_first(&state, a);
  step_second(&state, a);
  show("cubed", cubed);
  show("last", last);
  show("second", state.second);
  return 0;
}
