// Sums of exact products of slices (Ozaki scheme I; dgemm-tc, step 3), element by element.
//
// Slice s of row i of A is 2^exponents.rows(s, i) times integers. Slice s of vector v of B is
// 2^exponents.columns(s, v) times integers. Exponents descend with s. B has two vectors for each complex
// column of C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "base/view.hpp"
#include "recombine/accumulators.hpp"

namespace kintsugi::core {

struct SliceExponents {
  MatrixView<const std::int32_t> rows;     // (slice of A, row)
  MatrixView<const std::int32_t> columns;  // (slice of B, vector)
};

// Sums in FP64, rounded after every addition of a product (arith/weighted_sum.hpp). Products are added in the
// order of the calls of add().
class RunningSums {
 public:
  static std::size_t bytes(std::int64_t rows, std::int64_t columns);
  RunningSums(std::byte* memory, std::int64_t rows, std::int64_t columns);

  // Adds products of slice q of B, in ascending order of p. Group p of `products` is slice p of A times slice
  // q of B.
  void add(const Accumulators& products, const SliceExponents& exponents, int q, int threads) const;

  // C = alpha sum + beta C in FP64, rounded to T.
  template <class T>
  void finish(const SliceExponents& exponents, std::span<const VectorRange> rows,
              std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
              int threads) const;

 private:
  double* sums_;
  std::int64_t rows_;
  std::int64_t columns_;
};

// Exact sums: integers in digits of 32 bits. The unit is 2^(exponent of A's last slice + exponent of B's last
// slice).
class DigitSums {
 public:
  // Returns the bytes for sums over slices of elements that are below 2^largest and multiples of 2^smallest.
  static std::size_t bytes(std::int64_t rows, std::int64_t columns, int smallest, int largest);
  // Sets the sums of count_a slices of A and count_b slices of B with these exponents to zero.
  DigitSums(std::byte* memory, std::int64_t rows, std::int64_t columns, const SliceExponents& exponents,
            int count_a, int count_b);

  // Adds the same products as RunningSums::add().
  void add(const Accumulators& products, const SliceExponents& exponents, int q, int threads) const;

  // C = RN(alpha sum + beta C).
  template <class T>
  void finish(const SliceExponents& exponents, std::span<const VectorRange> rows,
              std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
              int threads) const;

 private:
  ExactSum sum(const SliceExponents& exponents, std::int64_t i, std::int64_t v) const;

  std::int64_t* digits_;
  std::int64_t rows_;
  std::int64_t columns_;
  int last_a_;  // index of the last slice of A
  int last_b_;  // index of the last slice of B
  int count_;   // digits per element
};

}  // namespace kintsugi::core
