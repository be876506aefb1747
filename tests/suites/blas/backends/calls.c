// Random calls of BLAS and LAPACK by the names of Fortran. Results are compared with sums in quadruple
// precision; a hash of their bits is printed. The macros Int and SUFFIX are the type of integers and the
// suffix of names:
//   cc -DInt=int64_t -DSUFFIX=64_ calls.c libblastrampoline.so.5
//   a.out CASES [exact]: products with alpha = 1 and beta = 0 must be correctly rounded
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OF(name, suffix) name##suffix
#define NAME_WITH(name, suffix) NAME_OF(name, suffix)
#define NAME(name) NAME_WITH(name, SUFFIX)

typedef __float128 Quad;
typedef double complex Complex;

#define GEMM(name, Type)                                                                                  \
  void NAME(name)(const char*, const char*, const Int*, const Int*, const Int*, const Type*, const Type*, \
                  const Int*, const Type*, const Int*, const Type*, Type*, const Int*, size_t, size_t)
GEMM(sgemm_, float);
GEMM(dgemm_, double);
GEMM(zgemm_, Complex);
void NAME(dtrsm_)(const char*, const char*, const char*, const char*, const Int*, const Int*, const double*,
                  const double*, const Int*, double*, const Int*, size_t, size_t, size_t, size_t);
void NAME(dgemv_)(const char*, const Int*, const Int*, const double*, const double*, const Int*,
                  const double*, const Int*, const double*, double*, const Int*, size_t);
void NAME(daxpy_)(const Int*, const double*, const double*, const Int*, double*, const Int*);
double NAME(ddot_)(const Int*, const double*, const Int*, const double*, const Int*);
double NAME(dnrm2_)(const Int*, const double*, const Int*);
Complex NAME(zdotc_)(const Int*, const Complex*, const Int*, const Complex*, const Int*);
Int NAME(idamax_)(const Int*, const double*, const Int*);
void NAME(dgetrf_)(const Int*, const Int*, double*, const Int*, Int*, Int*);

enum { largest = 90 };
static int exact;
static uint64_t state = 88172645463325252u, hash = 14695981039346656037u;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
static Int size(void) { return (Int)(1 + next_random() % largest); }
static double number(void) { return (double)(next_random() >> 11) * 0x1p-52 - 1; }

static void add_to_hash(const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ ((const unsigned char*)data)[i]) * 1099511628211u;
}

static void fail(const char* routine, double found, double expected, double error, double bound) {
  printf("%s: %.17g, not %.17g; error %g, bound %g\n", routine, found, expected, error, bound);
  exit(1);
}

static void check(const char* routine, double found, Quad expected, double bound) {
  const double error = fabs((double)(found - expected));
  if (!(error <= bound)) fail(routine, found, (double)expected, error, bound);
}

#define FILL(array, count, Type, expression) \
  static Type array[largest * largest];      \
  for (Int i = 0; i < (count); ++i) array[i] = (Type)(expression)

// Real products; `unit` is the unit of rounding.
#define CHECK_GEMM(name, Type, unit)                                                                         \
  static void check_##name(void) {                                                                           \
    const Int m = size(), n = size(), k = size();                                                            \
    const char op_a = "NT"[next_random() % 2], op_b = "NT"[next_random() % 2];                               \
    const Int lda = op_a == 'N' ? m : k, ldb = op_b == 'N' ? k : n;                                          \
    const int plain = next_random() % 2;                                                                     \
    const Type alpha = plain ? 1 : (Type)number(), beta = plain ? 0 : (Type)number();                        \
    FILL(a, m* k, Type, number());                                                                           \
    FILL(b, k* n, Type, number());                                                                           \
    FILL(c, m* n, Type, number());                                                                           \
    static Type before[largest * largest];                                                                   \
    memcpy(before, c, sizeof(c));                                                                            \
    NAME(name##_)(&op_a, &op_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &m, 1, 1);                   \
    add_to_hash(c, (size_t)(m * n) * sizeof(Type));                                                          \
    for (Int j = 0; j < n; ++j)                                                                              \
      for (Int i = 0; i < m; ++i) {                                                                          \
        Quad sum = 0, size_of_sum = 0;                                                                       \
        for (Int l = 0; l < k; ++l) {                                                                        \
          const Quad term = (Quad)(op_a == 'N' ? a[i + l * lda] : a[l + i * lda]) *                          \
                            (op_b == 'N' ? b[l + j * ldb] : b[j + l * ldb]);                                 \
          sum += term;                                                                                       \
          size_of_sum += term < 0 ? -term : term;                                                            \
        }                                                                                                    \
        const Quad expected = alpha * sum + (Quad)beta * before[i + j * m];                                  \
        const double bound =                                                                                 \
            (double)(k + 4) * (unit) * (fabs(alpha) * (double)size_of_sum + fabs(beta * before[i + j * m])); \
        check(#name, c[i + j * m], exact&& plain ? (Quad)(Type)expected : expected,                          \
              exact&& plain ? 0 : bound);                                                                    \
      }                                                                                                      \
  }
CHECK_GEMM(sgemm, float, 0x1p-24)
CHECK_GEMM(dgemm, double, 0x1p-53)

static void check_zgemm(void) {
  const Int m = size(), n = size(), k = size();
  const Complex alpha = 1, beta = 0;
  FILL(a, m * k, Complex, number() + number() * I);
  FILL(b, k * n, Complex, number() + number() * I);
  static Complex c[largest * largest];
  NAME(zgemm_)("N", "N", &m, &n, &k, &alpha, a, &m, b, &k, &beta, c, &m, 1, 1);
  add_to_hash(c, (size_t)(m * n) * sizeof(Complex));
  for (Int j = 0; j < n; ++j)
    for (Int i = 0; i < m; ++i) {
      Quad re = 0, im = 0;
      for (Int l = 0; l < k; ++l) {
        const Complex x = a[i + l * m], y = b[l + j * k];
        re += (Quad)creal(x) * creal(y) - (Quad)cimag(x) * cimag(y);
        im += (Quad)creal(x) * cimag(y) + (Quad)cimag(x) * creal(y);
      }
      const double bound = exact ? 0 : (double)(2 * k + 4) * 2 * (double)k * 0x1p-53;
      check("zgemm", creal(c[i + j * m]), exact ? (Quad)(double)re : re, bound);
      check("zgemm", cimag(c[i + j * m]), exact ? (Quad)(double)im : im, bound);
    }
}

// |b - op(L) x| of a lower triangle with a unit diagonal and small elements.
static void check_dtrsm(void) {
  const Int m = size(), n = size();
  const double alpha = 1;
  FILL(a, m * m, double, number() / (double)m);
  FILL(x, m * n, double, number());
  static double b[largest * largest];
  memcpy(b, x, sizeof(x));
  NAME(dtrsm_)("L", "L", "N", "U", &m, &n, &alpha, a, &m, x, &m, 1, 1, 1, 1);
  add_to_hash(x, (size_t)(m * n) * sizeof(double));
  for (Int j = 0; j < n; ++j)
    for (Int i = 0; i < m; ++i) {
      Quad product = x[i + j * m];
      for (Int l = 0; l < i; ++l) product += (Quad)a[i + l * m] * x[l + j * m];
      check("dtrsm", (double)product, b[i + j * m], 8 * (double)(m + 40) * 0x1p-53);
    }
}

static void check_vectors(void) {
  const Int n = size(), m = size(), one = 1;
  const double alpha = number(), beta = 0;
  FILL(a, m * n, double, number());
  FILL(x, n, double, number());
  FILL(y, m > n ? m : n, double, number());
  Quad dot = 0, squares = 0;
  Int widest = 0;
  for (Int i = 0; i < n; ++i) {
    dot += (Quad)x[i] * y[i];
    squares += (Quad)x[i] * x[i];
    if (fabs(x[i]) > fabs(x[widest])) widest = i;
  }
  const double unit = (double)(n + 4) * 0x1p-53 * (double)n;
  const double found_dot = NAME(ddot_)(&n, x, &one, y, &one), norm = NAME(dnrm2_)(&n, x, &one);
  check("ddot", found_dot, exact ? (Quad)(double)dot : dot, exact ? 0 : unit);
  check("dnrm2", norm, sqrt((double)squares), unit);
  check("idamax", (double)NAME(idamax_)(&n, x, &one), (Quad)(widest + 1), 0);
  static double result[largest];
  NAME(dgemv_)("N", &m, &n, &alpha, a, &m, x, &one, &beta, result, &one, 1);
  for (Int i = 0; i < m; ++i) {
    Quad sum = 0;
    for (Int l = 0; l < n; ++l) sum += (Quad)a[i + l * m] * x[l];
    check("dgemv", result[i], alpha * sum, unit);
  }
  add_to_hash(result, (size_t)m * sizeof(double));
  const double before = y[n - 1];
  NAME(daxpy_)(&n, &alpha, x, &one, y, &one);
  check("daxpy", y[n - 1], (Quad)alpha * x[n - 1] + before, 0x1p-51);
  FILL(u, n, Complex, number() + number() * I);
  const Complex product = NAME(zdotc_)(&n, u, &one, u, &one);
  Quad square = 0;
  for (Int i = 0; i < n; ++i) square += (Quad)creal(u[i]) * creal(u[i]) + (Quad)cimag(u[i]) * cimag(u[i]);
  check("zdotc", creal(product), square, 4 * unit);
  check("zdotc", cimag(product), 0, 4 * unit);
  add_to_hash(&product, sizeof(product));
}

// |P A - L U| of matrices that are large enough for products in LAPACK's own blocks.
static void check_dgetrf(void) {
  const Int n = 200;
  static double a[200 * 200], before[200 * 200];
  for (Int i = 0; i < n * n; ++i) before[i] = a[i] = number();
  Int pivots[200], info = 1;
  NAME(dgetrf_)(&n, &n, a, &n, pivots, &info);
  if (info != 0) fail("dgetrf", (double)info, 0, 0, 0);
  add_to_hash(a, sizeof(a));
  for (Int i = 0; i < n; ++i)
    for (Int j = 0; j < n; ++j) {
      const Int other = pivots[i] - 1;
      const double kept = before[i + j * n];
      before[i + j * n] = before[other + j * n];
      before[other + j * n] = kept;
    }
  for (Int j = 0; j < n; ++j)
    for (Int i = 0; i < n; ++i) {
      Quad sum = 0;
      for (Int l = 0; l < i && l <= j; ++l) sum += (Quad)a[i + l * n] * a[l + j * n];
      if (i <= j) sum += a[i + j * n];
      check("dgetrf", before[i + j * n], sum, 1e-11);
    }
}

int main(int count, char** words) {
  const int cases = count > 1 ? atoi(words[1]) : 40;
  exact = count > 2 && strcmp(words[2], "exact") == 0;
  for (int i = 0; i < cases; ++i) {
    check_sgemm();
    check_dgemm();
    check_zgemm();
    check_dtrsm();
    check_vectors();
    if (i % 20 == 0) check_dgetrf();
  }
  printf("%d cases %016llx\n", cases, (unsigned long long)hash);
  return 0;
}
