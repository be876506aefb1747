// Solves A X = B by a blocked LU factorization in FP32 with a block of look-ahead: eight call sites of GEMM.
// Panels are packed into buffers of their own before the products that update the rest of the matrix.
#include <algorithm>
#include <exception>

#include "lab/apps/common.hpp"

namespace {

using apps::Matrix;

// Diagonally dominant, so that no pivoting is needed.
Matrix dominant(int n, std::mt19937_64& random) {
  Matrix a = apps::random_matrix(n, n, random);
  for (int i = 0; i < n; ++i) a(i, i) += 2 * std::sqrt(static_cast<float>(n));
  return a;
}

Matrix packed(const Matrix& from, int row, int rows, int column, int columns) {
  Matrix copy(rows, columns);
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i) copy(i, j) = from(row + i, column + j);
  return copy;
}

// The factors of a diagonal block, in place, and their inverses.
struct Inverses {
  Matrix lower, upper;
};
Inverses factor_diagonal(Matrix& a, int first, int size) {
  for (int p = 0; p < size; ++p) {
    for (int i = p + 1; i < size; ++i) {
      a(first + i, first + p) /= a(first + p, first + p);
      for (int j = p + 1; j < size; ++j)
        a(first + i, first + j) -= a(first + i, first + p) * a(first + p, first + j);
    }
  }
  Inverses inverses{Matrix(size, size), Matrix(size, size)};
  for (int j = 0; j < size; ++j) {
    for (int i = j; i < size; ++i) {
      double sum = i == j ? 1 : 0;
      for (int p = j; p < i; ++p) sum -= static_cast<double>(a(first + i, first + p)) * inverses.lower(p, j);
      inverses.lower(i, j) = static_cast<float>(sum);
    }
    for (int i = j; i >= 0; --i) {
      double sum = i == j ? 1 : 0;
      for (int p = i + 1; p <= j; ++p)
        sum -= static_cast<double>(a(first + i, first + p)) * inverses.upper(p, j);
      inverses.upper(i, j) = static_cast<float>(sum / a(first + i, first + i));
    }
  }
  return inverses;
}

void factorize(Matrix& a, std::vector<Inverses>& diagonal, int block) {
  const int n = a.rows;
  const float one = 1, zero = 0, minus_one = -1;
  for (int first = 0; first < n; first += block) {
    const int size = std::min(block, n - first), row = first + size, rest = n - row;
    diagonal.push_back(factor_diagonal(a, first, size));
    if (rest == 0) break;
    const Inverses& inverse = diagonal.back();
    const Matrix column = packed(a, row, rest, first, size), panel = packed(a, first, size, row, rest);
    sgemm_("N", "N", &rest, &size, &size, &one, column.at(0, 0), &rest, inverse.upper.at(0, 0), &size, &zero,
           a.at(row, first), &n);
    sgemm_("N", "N", &size, &rest, &size, &one, inverse.lower.at(0, 0), &size, panel.at(0, 0), &size, &zero,
           a.at(first, row), &n);
    const Matrix lower = packed(a, row, rest, first, size), upper = packed(a, first, size, row, rest);
    const int next = std::min(block, rest), last = rest - next, below = row + next;
    sgemm_("N", "N", &next, &next, &size, &minus_one, lower.at(0, 0), &rest, upper.at(0, 0), &size, &one,
           a.at(row, row), &n);
    if (last == 0) continue;
    sgemm_("N", "N", &last, &next, &size, &minus_one, lower.at(next, 0), &rest, upper.at(0, 0), &size, &one,
           a.at(below, row), &n);
    sgemm_("N", "N", &next, &last, &size, &minus_one, lower.at(0, 0), &rest, upper.at(0, next), &size, &one,
           a.at(row, below), &n);
    sgemm_("N", "N", &last, &last, &size, &minus_one, lower.at(next, 0), &rest, upper.at(0, next), &size,
           &one, a.at(below, below), &n);
  }
}

// Multiplies block row `first` of X by the inverse of a diagonal block.
void apply_inverse(const Matrix& inverse, Matrix& x, int first) {
  const Matrix before = packed(x, first, inverse.rows, 0, x.columns);
  for (int j = 0; j < x.columns; ++j)
    for (int i = 0; i < inverse.rows; ++i) {
      double sum = 0;
      for (int p = 0; p < inverse.rows; ++p) sum += static_cast<double>(inverse(i, p)) * before(p, j);
      x(first + i, j) = static_cast<float>(sum);
    }
}

void substitute(const Matrix& a, const std::vector<Inverses>& diagonal, Matrix& x, int block) {
  const int n = a.rows, columns = x.columns;
  const float one = 1, minus_one = -1;
  for (int first = 0, at = 0; first < n; first += block, ++at) {
    const int size = std::min(block, n - first), row = first + size, rest = n - row;
    apply_inverse(diagonal[static_cast<std::size_t>(at)].lower, x, first);
    const Matrix solved = packed(x, first, size, 0, columns);
    if (rest > 0)
      sgemm_("N", "N", &rest, &columns, &size, &minus_one, a.at(row, first), &n, solved.at(0, 0), &size, &one,
             x.at(row, 0), &n);
  }
  for (int at = static_cast<int>(diagonal.size()) - 1; at >= 0; --at) {
    const int first = at * block, size = std::min(block, n - first);
    apply_inverse(diagonal[static_cast<std::size_t>(at)].upper, x, first);
    const Matrix solved = packed(x, first, size, 0, columns);
    if (first > 0)
      sgemm_("N", "N", &first, &columns, &size, &minus_one, a.at(0, first), &n, solved.at(0, 0), &size, &one,
             x.at(0, 0), &n);
  }
}

int run(int count, char** words) {
  if (count != 4) throw std::invalid_argument("usage: blocked_lu N BLOCK X.npy");
  const int n = apps::size_of_text(words[1], "N"), block = apps::size_of_text(words[2], "BLOCK");
  std::mt19937_64 random(apps::seed());
  Matrix a = dominant(n, random), x = apps::random_matrix(n, std::max(1, n / 2), random);
  std::vector<Inverses> diagonal;
  factorize(a, diagonal, block);
  substitute(a, diagonal, x, block);
  apps::write_npy(words[3], x);
  return 0;
}

}  // namespace

int main(int count, char** words) try { return run(count, words); } catch (const std::exception& error) {
  std::fprintf(stderr, "blocked_lu: %s\n", error.what());
  return 2;
}
