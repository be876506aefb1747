#include "recombine/recombine.hpp"

#include "arith/complex.hpp"
#include "arith/double_double.hpp"
#include "arith/exact/exact_sum.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/threads.hpp"

namespace kintsugi::core {

namespace {

// Returns the scratch bytes of one worker, which copies a row of A and the vectors of a column of B.
template <class T>
std::size_t worker_bytes(std::int64_t length) {
  return array_bytes(1 + parts_of<T>, length, sizeof(RealOf<T>));
}

template <class T>
T rounded_element(const T* row, const T* column, std::int64_t length, T alpha, T beta, const T* c) {
  ExactSum sum;
  sum.add_products(row, column, length);
  return rounded_result(sum, alpha, beta, c);
}

DoubleDouble rounded_element(const DoubleDouble* row, const DoubleDouble* column, std::int64_t length,
                             DoubleDouble alpha, DoubleDouble beta, const DoubleDouble* c) {
  ExactSum sum;
  add_products(sum, row, column, length);
  return rounded_pair_result(sum, alpha, beta, c);
}

template <class T>
std::complex<T> rounded_element(const T* row, const T* column, std::int64_t length, std::complex<T> alpha,
                                std::complex<T> beta, const std::complex<T>* c) {
  ExactSum re, im;
  re.add_products(row, column, length);
  im.add_products(row, column + length, length);
  return exact_epilogue(re, im, alpha, beta, c);
}

// Copies a vector to contiguous memory. Double-double numbers are normalized.
template <class View, class T>
void gather(const View& vectors, std::int64_t v, T* target) {
  for (std::int64_t p = 0; p < vectors.columns; ++p) target[p] = vectors(v, p);
}
void gather(const MatrixView<const DoubleDouble>& vectors, std::int64_t v, DoubleDouble* target) {
  for (std::int64_t p = 0; p < vectors.columns; ++p) target[p] = normalized(vectors(v, p));
}

}  // namespace

template <class T>
std::size_t exact_scratch_bytes(std::int64_t length, int threads) {
  return static_cast<std::size_t>(threads) * worker_bytes<T>(length);
}

template <class T>
void multiply_exactly(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, std::byte* scratch, int threads) {
  const int workers = workers_for(c.columns, threads);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    const FloatingEnvironment environment;
    auto* row =
        reinterpret_cast<RealOf<T>*>(scratch + static_cast<std::size_t>(worker) * worker_bytes<T>(a.columns));
    RealOf<T>* column = row + a.columns;
    for (std::int64_t j = worker; j < c.columns; j += workers) {
      const std::int64_t v = parts_of<T> * j;
      if (!columns[v].finite()) continue;
      bool has_column = false;  // copied once the first element needs it
      for (std::int64_t i = 0; i < c.rows; ++i) {
        if (!rows[i].finite() || (states != nullptr && states[i + j * c.rows] == 0)) continue;
        for (std::int64_t part = 0; part < parts_of<T> && !has_column; ++part)
          gather(b, v + part, column + part * b.columns);
        has_column = true;
        gather(a, i, row);
        T& element = c(i, j);
        element = rounded_element(row, column, a.columns, alpha, beta, beta == T(0) ? nullptr : &element);
      }
    }
  }
}

#define INSTANTIATE(T)                                                                                \
  template std::size_t exact_scratch_bytes<T>(std::int64_t, int);                                     \
  template void multiply_exactly<T>(const OperandView<T>&, const OperandView<T>&,                     \
                                    std::span<const VectorRange>, std::span<const VectorRange>, T, T, \
                                    const MatrixView<T>&, const std::uint8_t*, std::byte*, int);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
