// Errors of a computed C against the exact result, over all of its elements or a reproducible sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "base/view.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::measure {

// Elements are visited in tiles of tile_size x tile_size positions, so that a gathered row is used for
// several columns. Position p is row rows[p]; the last tiles may be cut off.
struct Selection {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  std::int64_t tile_size = 0;
  std::vector<std::int64_t> tiles;  // numbers of the tiles to visit, counted along rows of tiles
  std::int64_t elements = 0;

  std::int64_t tiles_across() const { return core::divide_up(std::ssize(columns), tile_size); }
  std::int64_t first_row(std::int64_t tile) const { return tile / tiles_across() * tile_size; }
  std::int64_t first_column(std::int64_t tile) const { return tile % tiles_across() * tile_size; }
  std::int64_t row_count(std::int64_t tile) const {
    return std::min(tile_size, std::ssize(rows) - first_row(tile));
  }
  std::int64_t column_count(std::int64_t tile) const {
    return std::min(tile_size, std::ssize(columns) - first_column(tile));
  }
  std::int64_t element_count(std::int64_t tile) const { return row_count(tile) * column_count(tile); }
};

// Selects all m n elements if m n k <= work_limit or m n <= max_elements; else about max_elements of them, at
// most 15 more, without repetition, including the four corners. Precondition: m, n > 0.
Selection select_elements(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t work_limit,
                          std::int64_t max_elements, std::uint64_t seed);

// Errors of C against R = alpha A B + beta C0, over the elements that were checked.
//
// Rules for special cases, for one element:
//  - R = 0 and C = 0: relative errors are 0 and left out of the mean; counted in zero_references.
//  - R = 0 and C not 0: max_relative is infinite; left out of the mean; counted in zero_references
//    and nonzero_at_zero_reference.
//  - R finite, C NaN or infinite: every max_*, the mean and the Frobenius error are infinite;
//    counted in special_mismatches. Exception: R is so large that it rounds to infinity in C's
//    type and C is that infinity; this is the right answer, has no error and is counted in
//    overflowed_references.
//  - R NaN or infinite: C must be NaN, or the same infinity. If so the element has no error and is
//    left out of the sums; if not, it counts as in the line above.
// Every element is counted: special_references counts those whose R is NaN or infinite.
struct ErrorReport {
  double frobenius_relative = 0;  // |C - R|_F / |R|_F; 0 if both are 0, infinite if only |R|_F is
  double max_relative = 0;        // max |C - R| / |R|
  double mean_relative = 0;       // MRED: mean |C - R| / |R| over the elements with R not 0
  // max |C - R| / (|alpha| |A||B| + |beta C0|). If that denominator is 0, R is 0 too, and an element with C
  // not 0 counts as infinite. An error below 2^-1075, which double cannot hold, counts as 0 here.
  double max_componentwise = 0;
  // Largest error in units in the last place of C's type at R. The unit is
  // 2^(max(exponent of R, smallest normal's) - p + 1). For double-double p is 107 and the unit at least
  // 2^-1074.
  double max_ulp = 0;
  double correctly_rounded_fraction = 1;  // share of elements where C is R rounded to C's type (-0 = +0)
  // le-gemm Eq. 19: max |C - S| / (|C| + |S|) over the checked elements, S the native result; NaN
  // when no native result was given. Elements where C = S (0, infinite or both NaN) count as 0.
  double le_gemm_max_error = std::numeric_limits<double>::quiet_NaN();
  // le-gemm Eq. 20: mean |S - C| / |S| over the checked elements with S not 0; NaN without a native result.
  double le_gemm_mred = std::numeric_limits<double>::quiet_NaN();

  std::int64_t elements_checked = 0;
  std::int64_t elements_total = 0;
  std::int64_t zero_references = 0;
  std::int64_t nonzero_at_zero_reference = 0;
  std::int64_t overflowed_references = 0;
  std::int64_t special_references = 0;
  std::int64_t special_mismatches = 0;

  double largest_error = 0;     // max |C - R|
  double largest_absolute = 0;  // max (|alpha| |A||B| + |beta C0|), elements where that is NaN left out
  // The coefficient of the contract of C's type (docs/TERMS.md), (k + 8) u with u = 2^-24, 2^-53 or
  // (double-double) 2^-104, and whether every checked element keeps |C - R| <= bound * (|alpha| |A||B| +
  // |beta C0|) + contract_underflow, which is contract_underflow() of alpha and k.
  double contract_bound = 0;
  double contract_underflow = 0;
  bool within_contract_bound = true;

  bool all_checked() const { return elements_checked == elements_total; }
};

// Absolute error that the contract of type T allows for underflow: (1 + |alpha|) (2 k + 8) w, w being the
// smallest normal number (docs/design/bounds.md). For parts of complex elements `alpha` is |Re| + |Im| and k
// is twice the inner length.
template <class T>
double contract_underflow(double alpha, std::int64_t k) {
  using Word = std::conditional_t<core::is_double_double<T>, double, T>;
  return (1 + alpha) * static_cast<double>(2 * k + 8) * static_cast<double>(std::numeric_limits<Word>::min());
}

// Errors of one checked element, for tests that compare with their own bounds.
struct ElementError {
  std::int64_t i = 0;
  std::int64_t j = 0;
  double computed = 0;
  double exact = 0;     // R rounded to nearest double
  double error = 0;     // C - R, formed exactly, rounded to nearest double; 0 if C is the right special value
  double absolute = 0;  // as in ExactElement::absolute
  double relative = 0;  // |C - R| / |R| by the rules of ErrorReport
  double ulp = 0;       // |C - R| in units in the last place
};

struct CheckOptions {
  // All elements are checked if m n k <= work_limit (about 2 ns per product and core), or if there are at
  // most max_elements of them; else a pseudo-random sample of max_elements (at most 15 more), without
  // repetition, always with the four corners. The same seed always gives the same sample.
  std::int64_t work_limit = std::int64_t{1} << 28;
  std::int64_t max_elements = 4096;
  std::uint64_t seed = 1;
  core::RoundingMode rounding = core::RoundingMode::nearest;  // of correctly rounded elements
  int threads = 0;                                            // 0: all. The report does not depend on it.
  // Called from time to time with the numbers of elements done and in total, by one thread at a time; must
  // not throw.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  // Receives the elements, in an unspecified order that is the same for any `threads`.
  std::vector<ElementError>* elements = nullptr;
};

// Measures the errors of the computed C. Matrices: a (m,k), b (k,n), c0, c and native (m,n), any strides,
// host memory. `native` is S of le-gemm's Eq. 19; its data may be null. Throws core::Error (invalid_argument)
// if shapes do not fit or a view that is read has no data.
template <class T>
ErrorReport measure_errors(const Product<T>& product, core::MatrixView<const T> c,
                           core::MatrixView<const T> native = {}, const CheckOptions& options = {});

// The exact elements of one product, computed once to measure the errors of several results: measure()
// returns the same as measure_errors(). Only the constructor reads the product's A, B and C0; C is m x n.
// Throws std::bad_alloc if the elements do not fit in memory.
template <class T>
class ExactReference {
 public:
  ExactReference(const Product<T>& product, std::int64_t m, std::int64_t n, const CheckOptions& options = {});

  ErrorReport measure(core::MatrixView<const T> c, core::MatrixView<const T> native = {},
                      std::vector<ElementError>* elements = nullptr) const;

  // Memory for every checked element: what is kept, and what measure() needs while it runs.
  static constexpr std::size_t bytes_per_element = sizeof(ElementReference<T>) + 2 * sizeof(ElementError);

 private:
  Product<T> product_;
  Selection selection_;
  std::int64_t m_;
  std::int64_t n_;
  std::vector<std::vector<ElementReference<T>>> tiles_;
};

}  // namespace kintsugi::measure
