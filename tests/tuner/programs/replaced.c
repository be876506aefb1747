// Random calls of every gemm of BLAS and CBLAS, each from a function of its own, with the BLAS of
// blas_stubs.c. C is compared with that of kintsugi_gemm() by the scheme that the command line names for the
// type.
//   replaced SEED CALLS SCHEME_S SCHEME_D SCHEME_C SCHEME_Z    counts differences
//   replaced wrong                                            calls with wrong arguments
#include <kintsugi/kintsugi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int calls_of_blas;

enum { largest = 24, padding = 3, elements = (largest + padding) * (largest + padding) };

typedef struct Case {
  kintsugi_type type;
  int is_row_major;
  int op_a, op_b;  // 0, 1, 2: N, T, C
  int m, n, k, lda, ldb, ldc;
  double alpha[2], beta[2];
} Case;

static const char letters[2][4] = {"NTC", "ntc"};
static double a[2 * elements], b[2 * elements], c[2 * elements], expected[2 * elements];

#define SCALAR_float(given) (float)(given)[0]
#define SCALAR_double(given) (given)[0]
#define SCALAR_complex(given) scalar(x->type, given)

// Returns a complex scalar of the type.
static const void* scalar(kintsugi_type type, const double* given) {
  static float singles[8][2];
  static int next = 0;
  if (type == KINTSUGI_F64 || type == KINTSUGI_C64) return given;
  float* const single = singles[next++ % 8];
  single[0] = (float)given[0];
  single[1] = (float)given[1];
  return single;
}

#define FORTRAN(name, integer)                                                                               \
  void name(const char*, const char*, const integer*, const integer*, const integer*, const void*,           \
            const void*, const integer*, const void*, const integer*, const void*, void*, const integer*);   \
  static void call_##name(const Case* x) {                                                                   \
    const integer m = x->m, n = x->n, k = x->k, lda = x->lda, ldb = x->ldb, ldc = x->ldc;                    \
    const char op_a = x->op_a < 0 ? 'X' : letters[m & 1][x->op_a], op_b = letters[n & 1][x->op_b];           \
    name(&op_a, &op_b, &m, &n, &k, scalar(x->type, x->alpha), a, &lda, b, &ldb, scalar(x->type, x->beta), c, \
         &ldc);                                                                                              \
  }
#define CBLAS(name, integer, kind, type)                                                                \
  void name(int, int, int, integer, integer, integer, type, const void*, integer, const void*, integer, \
            type, void*, integer);                                                                      \
  static void call_##name(const Case* x) {                                                              \
    name(x->is_row_major ? 101 : 102, 111 + x->op_a, 111 + x->op_b, x->m, x->n, x->k,                   \
         SCALAR_##kind(x->alpha), a, x->lda, b, x->ldb, SCALAR_##kind(x->beta), c, x->ldc);             \
  }
typedef const void* pointer;
#define ALL(letter, kind, type)                \
  FORTRAN(letter##gemm_, int)                  \
  FORTRAN(letter##gemm_64_, long)              \
  CBLAS(cblas_##letter##gemm, int, kind, type) \
  CBLAS(cblas_##letter##gemm_64, long, kind, type)
ALL(s, float, float)
ALL(d, double, double)
ALL(c, complex, pointer)
ALL(z, complex, pointer)

static void (*const calls[4][4])(const Case*) = {
    {call_sgemm_, call_sgemm_64_, call_cblas_sgemm, call_cblas_sgemm_64},
    {call_dgemm_, call_dgemm_64_, call_cblas_dgemm, call_cblas_dgemm_64},
    {call_cgemm_, call_cgemm_64_, call_cblas_cgemm, call_cblas_cgemm_64},
    {call_zgemm_, call_zgemm_64_, call_cblas_zgemm, call_cblas_zgemm_64}};

static int below(int bound) { return rand() / 16 % bound; }

static void fill(double* matrix, kintsugi_type type) {
  for (int i = 0; i < 2 * elements; ++i) {
    const double value = (below(1 << 26) - (1 << 25)) / 3e6;
    if (type == KINTSUGI_F32 || type == KINTSUGI_C32)
      ((float*)matrix)[i] = (float)value;
    else
      matrix[i] = value;
  }
}

static int leading_dimension(const Case* x, int op, int rows, int columns) {
  const int line = (op == 0) == !x->is_row_major ? rows : columns;
  return (line > 1 ? line : 1) + below(padding);
}

static Case random_case(int type, int interface) {
  static const double scalars[] = {0, 1, -1, 0.375, -2.5};
  Case x = {.type = (kintsugi_type)type,
            .is_row_major = interface >= 2 && below(2),
            .op_a = below(3),
            .op_b = below(3)};
  x.m = below(largest);
  x.n = below(largest);
  x.k = below(largest);
  x.lda = leading_dimension(&x, x.op_a, x.m, x.k);
  x.ldb = leading_dimension(&x, x.op_b, x.k, x.n);
  x.ldc = leading_dimension(&x, 0, x.m, x.n);
  for (int i = 0; i < 2; ++i) {
    x.alpha[i] = scalars[below(5)];
    x.beta[i] = scalars[below(5)];
  }
  return x;
}

static kintsugi_status multiply_by_the_abi(const Case* x, const char* scheme) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = x->type;
  problem.layout = x->is_row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  problem.op_a = x->op_a;
  problem.op_b = x->op_b;
  problem.m = x->m;
  problem.n = x->n;
  problem.k = x->k;
  problem.lda = x->lda;
  problem.ldb = x->ldb;
  problem.ldc = x->ldc;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.scheme = scheme;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = scalar(x->type, x->alpha);
  operands.beta = scalar(x->type, x->beta);
  operands.a = a;
  operands.b = b;
  operands.c = expected;
  return kintsugi_gemm(NULL, &problem, &options, &operands);
}

static int compare(int seed, int count, char** schemes) {
  int differences = 0;
  srand((unsigned)seed);
  for (int i = 0; i < count; ++i) {
    const int type = i % 4, interface = i / 4 % 4;
    const Case x = random_case(type, interface);
    fill(a, x.type);
    fill(b, x.type);
    fill(c, x.type);
    memcpy(expected, c, sizeof c);
    if (multiply_by_the_abi(&x, schemes[type]) != KINTSUGI_SUCCESS) printf("%s\n", kintsugi_last_error());
    calls[type][interface](&x);
    differences += memcmp(expected, c, sizeof c) != 0;
  }
  printf("%d differences, %d calls of BLAS\n", differences, calls_of_blas);
  return 0;
}

// Calls that BLAS refuses.
static int call_wrongly(void) {
  for (int type = 0; type < 4; ++type) {
    for (int interface = 0; interface < 4; ++interface) {
      const Case right = {.type = (kintsugi_type)type, .m = 4, .n = 3, .k = 2, .lda = 4, .ldb = 2, .ldc = 4};
      for (int wrong = 0; wrong < 7; ++wrong) {
        Case x = right;
        if (wrong == 0) x.m = -1;
        if (wrong == 1) x.n = -2;
        if (wrong == 2) x.k = -3;
        if (wrong == 3) x.lda = 3;
        if (wrong == 4) x.ldb = 1;
        if (wrong == 5) x.ldc = 0;
        if (wrong == 6) x.op_a = -2;
        calls[type][interface](&x);
      }
    }
  }
  printf("%d calls of BLAS\n", calls_of_blas);
  return 0;
}

int main(int count, char** words) {
  if (count == 2) return call_wrongly();
  return compare(atoi(words[1]), atoi(words[2]), words + 3);
}
