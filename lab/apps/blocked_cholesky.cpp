// Blocked Cholesky factorization A = L L^T in FP32, right-looking with one block column of look-ahead: four
// call sites of GEMM. The result, L, is checked in FP64.
#include <algorithm>
#include <exception>

#include "common.hpp"

namespace {

using apps::Matrix;

// The factorization fails on its own where the products are so inaccurate that a pivot is not positive; a
// residual beyond this is a wrong result whatever the precision.
constexpr double largest_residual = 0.1;

// M M^T / n + I: symmetric, and positive definite by its identity.
Matrix positive_definite(int n) {
  std::mt19937_64 random(apps::seed());
  const Matrix m = apps::random_matrix(n, n, random);
  Matrix a(n, n);
  for (int l = 0; l < n; ++l)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) a(i, j) += m(i, l) * m(j, l);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) a(i, j) = a(std::max(i, j), std::min(i, j)) / static_cast<float>(n);
  for (int i = 0; i < n; ++i) a(i, i) += 1;
  return a;
}

// The lower factor of a diagonal block into L, and its inverse.
Matrix factor_diagonal(const Matrix& a, Matrix& l, int first, int size) {
  for (int j = first; j < first + size; ++j) {
    for (int i = j; i < first + size; ++i) {
      double sum = a(i, j);
      for (int p = first; p < j; ++p) sum -= static_cast<double>(l(i, p)) * l(j, p);
      if (i == j && !(sum > 0)) throw std::runtime_error("pivot " + std::to_string(j) + " is not positive");
      l(i, j) = static_cast<float>(i == j ? std::sqrt(sum) : sum / l(j, j));
    }
  }
  Matrix inverse(size, size);
  for (int j = 0; j < size; ++j) {
    for (int i = j; i < size; ++i) {
      double sum = i == j ? 1 : 0;
      for (int p = j; p < i; ++p) sum -= static_cast<double>(l(first + i, first + p)) * inverse(p, j);
      inverse(i, j) = static_cast<float>(sum / l(first + i, first + i));
    }
  }
  return inverse;
}

// Rows from `row` on, or `rows` of them, of block column `first`.
APPS_CALL_SITE void solve_panel(const Matrix& a, const Matrix& inverse, Matrix& l, int row, int first,
                                int size) {
  const int rows = a.rows - row;
  const float one = 1, zero = 0;
  sgemm_("N", "T", &rows, &size, &size, &one, a.at(row, first), &a.rows, inverse.at(0, 0), &size, &zero,
         l.at(row, first), &l.rows);
  asm volatile("");  // no tail call, which would return to another function
}

// A(row:, column:) -= L(row:, first:) L(column:, first:)^T, of `rows` x `columns` elements.
struct Update {
  int row, rows, column, columns;
};

APPS_CALL_SITE void update_diagonal(Matrix& a, const Matrix& l, int first, int size, const Update& u) {
  const float minus_one = -1, one = 1;
  sgemm_("N", "T", &u.rows, &u.columns, &size, &minus_one, l.at(u.row, first), &l.rows, l.at(u.column, first),
         &l.rows, &one, a.at(u.row, u.column), &a.rows);
  asm volatile("");
}

APPS_CALL_SITE void update_panel(Matrix& a, const Matrix& l, int first, int size, const Update& u) {
  const float minus_one = -1, one = 1;
  sgemm_("N", "T", &u.rows, &u.columns, &size, &minus_one, l.at(u.row, first), &l.rows, l.at(u.column, first),
         &l.rows, &one, a.at(u.row, u.column), &a.rows);
  asm volatile("" ::: "memory");
}

APPS_CALL_SITE void update_trailing(Matrix& a, const Matrix& l, int first, int size, const Update& u) {
  const float minus_one = -1, one = 1;
  sgemm_("N", "T", &u.rows, &u.columns, &size, &minus_one, l.at(u.row, first), &l.rows, l.at(u.column, first),
         &l.rows, &one, a.at(u.row, u.column), &a.rows);
  asm volatile("nop");
}

Matrix factorize(Matrix a, int block) {
  const int n = a.rows;
  Matrix l(n, n);
  for (int first = 0; first < n; first += block) {
    const int size = std::min(block, n - first), row = first + size;
    const Matrix inverse = factor_diagonal(a, l, first, size);
    if (row == n) break;
    solve_panel(a, inverse, l, row, first, size);
    const int next = std::min(block, n - row), below = row + next;
    update_diagonal(a, l, first, size, {row, next, row, next});
    if (below == n) continue;
    update_panel(a, l, first, size, {below, n - below, row, next});
    update_trailing(a, l, first, size, {below, n - below, below, n - below});
  }
  return l;
}

// |A - L L^T|_F / |A|_F.
double residual(const Matrix& a, const Matrix& l) {
  apps::RelativeError error;
  for (int j = 0; j < a.columns; ++j) {
    for (int i = j; i < a.rows; ++i) {
      double sum = 0;
      for (int p = 0; p <= j; ++p) sum += static_cast<double>(l(i, p)) * l(j, p);
      error.add(sum, a(i, j));
    }
  }
  return error.value();
}

int run(int count, char** words) {
  if (count != 4) throw std::invalid_argument("usage: blocked_cholesky N BLOCK L.npy");
  const Matrix a = positive_definite(apps::size_of_text(words[1], "N"));
  const Matrix l = factorize(a, apps::size_of_text(words[2], "BLOCK"));
  apps::write_npy(words[3], l);
  return apps::judge("|A - L L^T| / |A|", residual(a, l), largest_residual);
}

}  // namespace

int main(int count, char** words) try { return run(count, words); } catch (const std::exception& error) {
  std::fprintf(stderr, "blocked_cholesky: %s\n", error.what());
  return 2;
}
