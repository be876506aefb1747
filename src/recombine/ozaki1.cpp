#include "recombine/ozaki1.hpp"

#include <algorithm>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_sum.hpp"
#include "arith/weighted_sum.hpp"
#include "base/memory.hpp"
#include "recombine/finite_elements.hpp"
#include "recombine/recombine.hpp"

namespace kintsugi::core {

namespace {

constexpr int digit_bits = 32;

// Returns the number of digits of sums whose terms begin at bits 0 ... depth. A term of 64 bits reaches from
// the digit in which it begins into the two digits above.
int digits_for(int depth) { return depth / digit_bits + 3; }

// Returns the largest difference, over all vectors, of the exponents of slice 0 and slice `last`.
int largest_depth(const MatrixView<const std::int32_t>& exponents, std::int64_t vectors, int last) {
  int depth = 0;
  for (std::int64_t v = 0; v < vectors; ++v) depth = std::max(depth, exponents(0, v) - exponents(last, v));
  return depth;
}

// Adds integer * 2^position without carries. Each product changes a digit by less than 2^32, so 63 bits
// suffice for 2^31 products.
void add_to_digits(std::int64_t* digits, std::int64_t integer, int position) {
  const bool negative = integer < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -integer : integer);
  const int shift = position % digit_bits;
  std::int64_t* digit = digits + position / digit_bits;
  const std::uint64_t low = magnitude << shift;
  const std::uint64_t high = (magnitude >> 1) >> (63 - shift);
  const std::int64_t sign = negative ? -1 : 1;
  digit[0] += sign * static_cast<std::int64_t>(low & 0xffffffffU);
  digit[1] += sign * static_cast<std::int64_t>(low >> digit_bits);
  digit[2] += sign * static_cast<std::int64_t>(high);
}

}  // namespace

std::size_t RunningSums::bytes(std::int64_t rows, std::int64_t columns) {
  return array_bytes(rows, columns, sizeof(double));
}

RunningSums::RunningSums(std::byte* memory, std::int64_t rows, std::int64_t columns)
    : sums_(reinterpret_cast<double*>(memory)), rows_(rows), columns_(columns) {
  std::fill_n(sums_, rows * columns, 0.0);
}

void RunningSums::add(const Accumulators& products, const SliceExponents& exponents, int q,
                      int threads) const {
#pragma omp parallel for num_threads(workers_for(columns_, threads)) schedule(static)
  for (std::int64_t j = 0; j < columns_; ++j) {
    const FloatingEnvironment environment;
    double* sums = sums_ + j * rows_;
    const int column_depth = exponents.columns(0, j) - exponents.columns(q, j);
    for (int p = 0; p < products.groups; ++p) {
      const std::int64_t* integers = products.group<std::int64_t>(p) + j * rows_;
      for (std::int64_t i = 0; i < rows_; ++i) {
        sums[i] += running_term(integers[i], column_depth + exponents.rows(0, i) - exponents.rows(p, i));
      }
    }
  }
}

template <class T>
void RunningSums::finish(const SliceExponents& exponents, std::span<const VectorRange> rows,
                         std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                         int threads) const {
  const auto exponent = [&](std::int64_t i, std::int64_t v) {
    return exponents.rows(0, i) + exponents.columns(0, v) - running_exponent;
  };
  const auto weighted = [&](std::int64_t i, std::int64_t v) {
    return times_power_of_two(sums_[i + v * rows_], exponent(i, v));
  };
  for_each_finite_element(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& element) {
    const T* old = beta == T(0) ? nullptr : &element;
    if constexpr (is_complex<T>) {
      element = epilogue(Complex<double>(weighted(i, 2 * j), weighted(i, 2 * j + 1)), alpha, beta, old);
    } else {
      element = epilogue(sums_[i + j * rows_], exponent(i, j), alpha, beta, old);
    }
  });
}

std::size_t DigitSums::bytes(std::int64_t rows, std::int64_t columns, int smallest, int largest) {
  return array_bytes(rows * digits_for(2 * (largest - smallest)), columns, sizeof(std::int64_t));
}

DigitSums::DigitSums(std::byte* memory, std::int64_t rows, std::int64_t columns,
                     const SliceExponents& exponents, int count_a, int count_b)
    : digits_(reinterpret_cast<std::int64_t*>(memory)), rows_(rows), columns_(columns),
      last_a_(std::max(count_a - 1, 0)), last_b_(std::max(count_b - 1, 0)),
      count_(digits_for(largest_depth(exponents.rows, rows, last_a_) +
                        largest_depth(exponents.columns, columns, last_b_))) {
  std::fill_n(digits_, rows * columns * count_, 0);
}

void DigitSums::add(const Accumulators& products, const SliceExponents& exponents, int q, int threads) const {
#pragma omp parallel for num_threads(workers_for(columns_, threads)) schedule(static)
  for (std::int64_t j = 0; j < columns_; ++j) {
    const int column_position = exponents.columns(q, j) - exponents.columns(last_b_, j);
    for (std::int64_t i = 0; i < rows_; ++i) {
      std::int64_t* digits = digits_ + (i + j * rows_) * count_;
      for (int p = 0; p < products.groups; ++p) {
        const std::int64_t integer = products.group<std::int64_t>(p)[i + j * rows_];
        add_to_digits(digits, integer, column_position + exponents.rows(p, i) - exponents.rows(last_a_, i));
      }
    }
  }
}

ExactSum DigitSums::sum(const SliceExponents& exponents, std::int64_t i, std::int64_t v) const {
  ExactSum sum;
  const std::int64_t* digits = digits_ + (i + v * rows_) * count_;
  const int lowest = exponents.rows(last_a_, i) + exponents.columns(last_b_, v);
  for (int d = 0; d < count_; ++d) {
    const bool negative = digits[d] < 0;
    sum.add_integer(static_cast<std::uint64_t>(negative ? -digits[d] : digits[d]), lowest + d * digit_bits,
                    negative);
  }
  return sum;
}

template <class T>
void DigitSums::finish(const SliceExponents& exponents, std::span<const VectorRange> rows,
                       std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                       int threads) const {
  for_each_finite_element(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& element) {
    const T* old = beta == T(0) ? nullptr : &element;
    if constexpr (is_complex<T>) {
      element = exact_epilogue(sum(exponents, i, 2 * j), sum(exponents, i, 2 * j + 1), alpha, beta, old);
    } else {
      ExactSum exact = sum(exponents, i, j);
      element = rounded_result(exact, alpha, beta, old);
    }
  });
}

#define INSTANTIATE(T)                                                                                    \
  template void RunningSums::finish(const SliceExponents&, std::span<const VectorRange>,                  \
                                    std::span<const VectorRange>, T, T, const MatrixView<T>&, int) const; \
  template void DigitSums::finish(const SliceExponents&, std::span<const VectorRange>,                    \
                                  std::span<const VectorRange>, T, T, const MatrixView<T>&, int) const;
KINTSUGI_FOR_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
