#include <cstdint>
#include <stdexcept>
#include <variant>
#include <vector>

#include "bench/contestant.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::tools {

namespace {

// Returns zeros for all products of the batch. Fails if they do not fit in the machine's memory.
template <class T>
std::vector<T> make_elements(const Bench& bench, std::int64_t rows, std::int64_t columns) {
  return std::get<std::vector<T>>(make_matrix(bench.batch > 1 ? "--batch" : "--shapes", bench.batch * rows,
                                              columns, type_of<T>, Order::row_major)
                                      .values);
}

// Returns one operand of all products of the batch, each generated from a seed of its own.
template <class T>
std::vector<T> generated(const Bench& bench, measure::Side side, std::int64_t rows, std::int64_t columns) {
  std::vector<T> values = make_elements<T>(bench, rows, columns);
  try {
    for (std::int64_t product = 0; product < bench.batch; ++product) {
      measure::fill(measure::parse_distribution(bench.distribution), side,
                    bench.seed + static_cast<std::uint64_t>(product),
                    core::MatrixView<T>{values.data() + product * rows * columns, rows, columns, columns, 1});
    }
  } catch (const std::runtime_error& error) {  // the type cannot hold the distribution's values
    fail("--distribution", "{}", error.what());
  }
  return values;
}

}  // namespace

template <class T>
BenchMatrices<T>::BenchMatrices(const Bench& bench, const Shape& size)
    : shape(size), batch(bench.batch), parts(bench.parts()),
      a(generated<T>(bench, measure::Side::a, size.m, parts * size.k)),
      b(generated<T>(bench, measure::Side::b, size.k, parts * size.n)),
      c(make_elements<T>(bench, size.m, parts * size.n)) {}

template <class T>
core::MatrixView<const T> BenchMatrices<T>::view_b(std::int64_t product) const {
  const std::int64_t columns = parts * shape.n;
  const T* original = b.data() + product * shape.k * columns;
  if (parts == 1) return {original, shape.k, columns, columns, 1};
  if (embedded_product_ != product) {
    embedded_product_ = product;
    embedded_b_.resize(static_cast<std::size_t>(2 * shape.k * columns));
    for (std::int64_t p = 0; p < shape.k; ++p) {
      // The rows by which the real and the imaginary parts of A's column p are multiplied.
      T* times_real = embedded_b_.data() + 2 * p * columns;
      T* times_imaginary = times_real + columns;
      for (std::int64_t j = 0; j < columns; j += 2) {
        const T real = original[p * columns + j];
        const T imaginary = original[p * columns + j + 1];
        times_real[j] = real;
        times_real[j + 1] = imaginary;
        times_imaginary[j] = -imaginary;
        times_imaginary[j + 1] = real;
      }
    }
  }
  return {embedded_b_.data(), 2 * shape.k, columns, columns, 1};
}

template struct BenchMatrices<float>;
template struct BenchMatrices<double>;

}  // namespace kintsugi::tools
