#include "recombine/exact_sums.hpp"

#include "arith/exact_sum.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/workers.hpp"
#include "recombine/rounded_result.hpp"

namespace kintsugi::core {

namespace {

// A row of A and a column of B of one worker, contiguous.
template <class T>
std::size_t worker_bytes(std::int64_t k) {
  return array_bytes(2, k, sizeof(T));
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
                      T beta, const MatrixView<T>& c, std::byte* scratch, int threads) {
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
        if (!rows[i].finite()) continue;
        gather(a, i, row);
        T& entry = c(i, j);
        ExactSum sum;
        sum.add_products(row, column, a.columns);
        entry = rounded_result(sum, alpha, beta, beta == 0 ? nullptr : &entry);
      }
    }
  }
}

template std::size_t exact_scratch_bytes<float>(std::int64_t, int);
template std::size_t exact_scratch_bytes<double>(std::int64_t, int);
template void multiply_exactly(const MatrixView<const float>&, const MatrixView<const float>&,
                               std::span<const VectorRange>, std::span<const VectorRange>, float, float,
                               const MatrixView<float>&, std::byte*, int);
template void multiply_exactly(const MatrixView<const double>&, const MatrixView<const double>&,
                               std::span<const VectorRange>, std::span<const VectorRange>, double, double,
                               const MatrixView<double>&, std::byte*, int);

}  // namespace kintsugi::core
