#include "recombine/exact_sums.hpp"

#include <cmath>

#include "arith/epilogue.hpp"
#include "arith/exact_sum.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/workers.hpp"

namespace kintsugi::core {

namespace {

// A row of A and a column of B of one worker, contiguous.
template <class T>
std::size_t worker_bytes(std::int64_t k) {
  return array_bytes(2, k, sizeof(T));
}

template <class T>
T rounded_entry(const T* row, const T* column, std::int64_t k, T alpha, T beta, const T* c) {
  ExactSum sum;
  sum.add_products(row, column, k);
  if (!std::isfinite(alpha) || (c != nullptr && !std::isfinite(beta)))
    return special_epilogue(sum.sign(), alpha, beta, c);
  sum.multiply(static_cast<double>(alpha));
  if (c != nullptr) sum.add_product(beta, *c);
  if constexpr (sizeof(T) == sizeof(float)) return sum.to_float();
  return static_cast<T>(sum.to_double());
}

template <class T>
void gather(const MatrixView<const T>& vectors, std::int64_t v, T* target) {
  for (std::int64_t p = 0; p < vectors.columns; ++p) target[p] = vectors(v, p);
}

}  // namespace

template <class T>
std::size_t exact_scratch_bytes(std::int64_t k, int threads) {
  return static_cast<std::size_t>(threads) * worker_bytes<T>(k);
}

template <class T>
void multiply_exactly(const MatrixView<const T>& a, const MatrixView<const T>& b,
                      std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                      T beta, const MatrixView<T>& c, const std::uint8_t* open, std::byte* scratch,
                      int threads) {
  const int workers = workers_for(c.columns, threads);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    const FloatingEnvironment environment;
    T* row = reinterpret_cast<T*>(scratch + static_cast<std::size_t>(worker) * worker_bytes<T>(a.columns));
    T* column = row + a.columns;
    for (std::int64_t j = worker; j < c.columns; j += workers) {
      if (!columns[j].finite()) continue;
      gather(b, j, column);
      for (std::int64_t i = 0; i < c.rows; ++i) {
        if (!rows[i].finite() || (open != nullptr && open[i + j * c.rows] == 0)) continue;
        gather(a, i, row);
        T& entry = c(i, j);
        entry = rounded_entry(row, column, a.columns, alpha, beta, beta == 0 ? nullptr : &entry);
      }
    }
  }
}

template std::size_t exact_scratch_bytes<float>(std::int64_t, int);
template std::size_t exact_scratch_bytes<double>(std::int64_t, int);
template void multiply_exactly(const MatrixView<const float>&, const MatrixView<const float>&,
                               std::span<const VectorRange>, std::span<const VectorRange>, float, float,
                               const MatrixView<float>&, const std::uint8_t*, std::byte*, int);
template void multiply_exactly(const MatrixView<const double>&, const MatrixView<const double>&,
                               std::span<const VectorRange>, std::span<const VectorRange>, double, double,
                               const MatrixView<double>&, const std::uint8_t*, std::byte*, int);

}  // namespace kintsugi::core
