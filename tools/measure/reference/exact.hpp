// Exact references: elements of C = alpha A B + beta C0 without any rounding (arith/exact/exact_sum.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

#include "arith/exact/exact_sum.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::measure {

using core::ExactSum;
using core::magnitude_ratio;
using core::Scaled;

// Type of alpha and beta: doubles, which hold floats exactly, or double-double numbers.
template <class T>
using ScalarOf = std::conditional_t<core::is_double_double<T>, core::DoubleDouble, double>;

// Arguments of C = alpha A B + beta C0. Views are of op(A) and op(B): a transpose is other strides. With
// alpha = 0 or k = 0, A and B are not read; with beta = 0, C0 is not read. What is not read may be null.
template <class T>
struct Product {
  core::MatrixView<const T> a;  // (m,k)
  core::MatrixView<const T> b;  // (k,n)
  ScalarOf<T> alpha = 1;
  ScalarOf<T> beta = 0;
  core::MatrixView<const T> c0 = {};  // (m,n)
  // Imaginary parts of the scalars of a complex product whose parts are columns 2j and 2j + 1
  // (base/embedding.hpp). To an element they add the other part's AB and C0 times these, negated in the real
  // parts' columns.
  double alpha_im = 0;
  double beta_im = 0;

  // True if an element of C depends on the other part of a complex product: its sums of columns j and j ^ 1.
  bool crosses() const { return alpha_im != 0 || beta_im != 0; }
  // True if A and B are read.
  bool multiplies() const { return alpha != 0 || alpha_im != 0; }
};

struct ExactElement {
  double value = 0;  // R_ij = (alpha A B + beta C0)_ij rounded to nearest double
  // |alpha| (|A||B|)_ij + |beta C0_ij|: never below the exact sum, above it by at most (k + 8) 2^-52 of it
  // (or 2^-1073); infinite if it is beyond double, NaN or infinite with special values.
  double absolute = 0;
};

// Reference of one element of C: its exact value R, and errors relative to R without rounding. The row of A
// and the column of B are contiguous, `count` = k elements each.
template <class T>
class ElementReference {
 public:
  ElementReference(const T* row, const T* column, std::int64_t count, ScalarOf<T> alpha, ScalarOf<T> beta,
                   ScalarOf<T> c0);

  // Adds another element's exact sum.
  ElementReference& operator+=(const ElementReference& other);

  ExactElement element() const { return {sum_.to_double(), absolute_}; }
  // Returns the exact R.
  const ExactSum& sum() const { return sum_; }
  // Returns c - R, formed exactly; special values as in IEEE 754.
  ExactSum error_of(T computed) const;
  // Returns R rounded once to T, pairs to nearest alone: the correctly rounded element.
  T rounded(core::RoundingMode rounding = core::RoundingMode::nearest) const;

 private:
  ExactSum sum_;
  double absolute_ = 0;
};

// Returns element (i, j) of a product from row i of A and columns j and, if the product crosses, j ^ 1 of B,
// all contiguous.
template <class T>
ElementReference<T> element_reference(const Product<T>& product, std::int64_t i, std::int64_t j, const T* row,
                                      const T* column, const T* crossed);

// Returns element (i, j) of a product; gathers row and column itself.
template <class T>
ExactElement exact_element(const Product<T>& product, std::int64_t i, std::int64_t j);

// Returns c - R_ij for a given c, formed exactly, then rounded to nearest double. Special values as in IEEE
// 754 (NaN if both are the same infinity); metrics.hpp judges those by its own rules.
template <class T>
double exact_error(const Product<T>& product, std::int64_t i, std::int64_t j, T computed);

// Computes the correctly rounded C (m,n), as the contract `exact` promises. C0 may be C itself. `threads` 0:
// all.
template <class T>
void exact_product(const Product<T>& product, core::MatrixView<T> c, int threads = 0);

}  // namespace kintsugi::measure
