/* ScaLAPACK's pdgemm and pdgesv on all ranks; checks both on the first rank and prints a hash of the bits of C and of X.
   Arguments: order, block. Two things keep PBLAS from rounding in an order that depends on the ranks:
   - Ranks are rows of the process grid. With two columns pdtrsm adds up the products of each column's ranks before
     it subtracts them.
   - The order is a multiple of the block. For a smaller last block pdgemm may round the product and then the
     difference, where on one rank it leaves both to one dgemm. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void blacs_pinfo_(int*, int*);
void blacs_get_(const int*, const int*, int*);
void blacs_gridinit_(int*, const char*, const int*, const int*);
void blacs_gridinfo_(const int*, int*, int*, int*, int*);
void blacs_exit_(const int*);
int numroc_(const int*, const int*, const int*, const int*, const int*);
void descinit_(int*, const int*, const int*, const int*, const int*, const int*, const int*, const int*,
               const int*, int*);
void pdgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
             const int*, const int*, const int*, const double*, const int*, const int*, const int*,
             const double*, double*, const int*, const int*, const int*);
void pdgesv_(const int*, const int*, double*, const int*, const int*, const int*, int*, double*, const int*,
             const int*, const int*, int*);
void pdgemr2d_(const int*, const int*, const double*, const int*, const int*, const int*, double*, const int*,
               const int*, const int*, const int*);

static const int zero = 0, one = 1;
static int n, block, context, context_of_one, rows, columns, row, column;

/* A matrix distributed block-cyclically. */
typedef struct {
  double* data;
  int description[9];
} matrix;

static double element(int i, int j, int seed) {
  uint64_t x =
      ((uint64_t)i * 1000003u + (uint64_t)j) * 6364136223846793005u + (uint64_t)seed * 1442695040888963407u;
  x ^= x >> 31, x *= 0x9e3779b97f4a7c15u, x ^= x >> 29;
  return (double)(int64_t)x * 0x1p-63 + (i == j && seed == 1 ? 4 : 0);
}

static int global_of(int local, int place, int places) {
  return (local / block * places + place) * block + local % block;
}

static matrix make(int seed) {
  matrix result;
  const int m = numroc_(&n, &block, &row, &zero, &rows), k = numroc_(&n, &block, &column, &zero, &columns);
  const int ld = m > 1 ? m : 1;
  int status;
  result.data = calloc((size_t)ld * (size_t)(k > 1 ? k : 1), sizeof(double));
  descinit_(result.description, &n, &n, &block, &block, &zero, &zero, &context, &ld, &status);
  for (int j = 0; j < k && seed != 0; ++j)
    for (int i = 0; i < m; ++i)
      result.data[i + (size_t)j * (size_t)ld] =
          element(global_of(i, row, rows), global_of(j, column, columns), seed);
  return result;
}

/* All of a matrix on the first rank, elsewhere nothing. */
static double* gather(const matrix* distributed, int is_first) {
  int description[9] = {1, -1, n, n, block, block, 0, 0, n}, status;
  double* whole = is_first ? malloc((size_t)n * (size_t)n * sizeof(double)) : NULL;
  if (is_first) descinit_(description, &n, &n, &n, &n, &zero, &zero, &context_of_one, &n, &status);
  pdgemr2d_(&n, &n, distributed->data, &one, &one, distributed->description, whole, &one, &one, description,
            &context);
  return whole;
}

static unsigned long long hash_of(const double* values) {
  const unsigned char* bytes = (const unsigned char*)values;
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < (size_t)n * (size_t)n * sizeof(double); ++i)
    hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

static void check(const char* name, double difference, int i, int j) {
  if (difference <= 1e-13 * n) return;
  fprintf(stderr, "%s differs by %g at row %d, column %d\n", name, difference, i, j);
  exit(1);
}

static void report(const double* c, const double* x) {
  for (int j = 0; j < n; j += 17) {
    for (int i = 0; i < n; i += 13) {
      double product = 0, residual = -element(i, j, 2);
      for (int p = 0; p < n; ++p) {
        product += element(i, p, 1) * element(p, j, 2);
        residual += element(i, p, 1) * x[p + (size_t)j * (size_t)n];
      }
      check("pdgemm", fabs(c[i + (size_t)j * (size_t)n] - product), i, j);
      check("pdgesv", fabs(residual) / 100, i, j);
    }
  }
  printf("bits %016llx %016llx\n", hash_of(c), hash_of(x));
}

int main(int count, char** words) {
  const int minus_one = -1;
  const double factor = 1, none = 0;
  int rank, ranks, status;
  n = count > 1 ? atoi(words[1]) : 192, block = count > 2 ? atoi(words[2]) : 32;
  blacs_pinfo_(&rank, &ranks);
  blacs_get_(&minus_one, &zero, &context), blacs_get_(&minus_one, &zero, &context_of_one);
  rows = ranks, columns = 1;
  blacs_gridinit_(&context, "Row", &rows, &columns), blacs_gridinit_(&context_of_one, "Row", &one, &one);
  blacs_gridinfo_(&context, &rows, &columns, &row, &column);
  matrix a = make(1), b = make(2), c = make(0);
  int* pivots = calloc((size_t)(n + block), sizeof(int));
  pdgemm_("N", "N", &n, &n, &n, &factor, a.data, &one, &one, a.description, b.data, &one, &one, b.description,
          &none, c.data, &one, &one, c.description);
  pdgesv_(&n, &n, a.data, &one, &one, a.description, pivots, b.data, &one, &one, b.description, &status);
  if (status != 0) fprintf(stderr, "pdgesv's status is %d\n", status);
  double *whole_c = gather(&c, rank == 0), *whole_x = gather(&b, rank == 0);
  if (rank == 0) report(whole_c, whole_x);
  blacs_exit_(&zero);
  return status != 0;
}
