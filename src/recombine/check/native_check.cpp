#include "recombine/check/native_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_sum.hpp"
#include "arith/underflow.hpp"
#include "base/floating_environment.hpp"
#include "base/threads/workers.hpp"
#include "recombine/check/value_range.hpp"
#include "recombine/rounded_result.hpp"
#include "recombine/special_element.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = 128;         // rows and columns of C that are checked together
constexpr std::int64_t max_run = 1 << 14;  // contiguous numbers that a thread processes at a time

template <class T>
const MatrixView<const T>& elements_of(const MatrixView<const T>& view) {
  return view;
}
template <class T>
const MatrixView<const std::complex<T>>& elements_of(const EmbeddedView<T>& view) {
  return view.matrix;
}

template <class T>
UnderflowLimits limits_of(const NativeCheck<T>& check) {
  const std::int64_t products_with_beta = check.beta == T(0) ? 0 : parts_of<T>;
  return underflow_limits<RealOf<T>>(check.a.columns + products_with_beta);
}

// Sum of FP32 products in FP64, which neither underflows nor overflows: products of FP32 numbers are normal
// FP64 numbers.
struct WideSum {
  double value = 0;

  void add_product(float x, float y) { value += static_cast<double>(x) * static_cast<double>(y); }
};
template <class Real>
using SafeSum = std::conditional_t<std::is_same_v<Real, float>, WideSum, ExactSum>;

template <class View, class Real>
void add_products(const View& a, const View& b, std::int64_t i, std::int64_t v, SafeSum<Real>& sum) {
  for (std::int64_t p = 0; p < a.columns; ++p) sum.add_product(a(i, p), b(v, p));
}

float rounded_real(const WideSum& sum, float alpha, float beta, const float* c) {
  return epilogue(sum.value, alpha, beta, c);
}
double rounded_real(ExactSum& sum, double alpha, double beta, const double* c) {
  return rounded_result(sum, alpha, beta, c);
}

// Returns the recomputed element (i, j) of finite operands. `c` is null if beta = 0.
template <class T>
T recomputed_element(const NativeCheck<T>& check, std::int64_t i, std::int64_t j, const T* c) {
  using Real = RealOf<T>;
  SafeSum<Real> re, im;
  add_products<OperandView<T>, Real>(check.a, check.b, i, parts_of<T> * j, re);
  if constexpr (is_complex<T>) {
    add_products<OperandView<T>, Real>(check.a, check.b, i, 2 * j + 1, im);
    if constexpr (std::is_same_v<Real, float>) {
      return epilogue(Complex<double>(re.value, im.value), check.alpha, check.beta, c);
    } else {
      return exact_epilogue(re, im, check.alpha, check.beta, c);
    }
  } else {
    return rounded_real(re, check.alpha, check.beta, c);
  }
}

// Returns (|A||B|)_ij in double. Products that underflow or overflow in double are far below or above every
// limit, so they do no harm.
template <class T>
double sum_of_magnitudes(const NativeCheck<T>& check, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t p = 0; p < check.a.columns; ++p)
    sum += std::abs(static_cast<double>(check.a(i, p)) * static_cast<double>(check.b(j, p)));
  return sum;
}

// Returns factor * sum + beta * c, rounded once for FP32. `c` is null if beta = 0.
template <class T>
T epilogue_of(const T& sum, const T& factor, const T& beta, const T* c) {
  if constexpr (is_complex<T>) {
    return epilogue(Complex<double>(sum.real(), sum.imag()), factor, beta, c);
  } else {
    return epilogue(static_cast<double>(sum), factor, beta, c);
  }
}

// Checks elements of a tile of C. Ranges of the tile's rows of A and columns of B are computed when they are
// needed for the first time.
template <class T>
class TileCheck {
 public:
  TileCheck(const NativeCheck<T>& check, const UnderflowLimits& limits)
      : check_(check), limits_(limits), least_(static_cast<Real>(limits.sum)) {}

  // True if all native results of the tile are valid, by the smallest and largest elements of the tile's
  // operands.
  bool are_valid(const MatrixView<T>& results) {
    const auto lines = lines_of(results);
    bool finite = true;
    for (std::int64_t l = 0; finite && l < lines.count; ++l)
      finite = range_of(lines.line(l), lines.length).finite();
    return finite && cannot_underflow(range_of_all(rows_), range_of_all(columns_));
  }

  // True if one result is valid, by its magnitude or by the ranges of its row and its column.
  bool is_valid(const T& x, std::int64_t i, std::int64_t j) {
    bool is_large = true;
    bool all_finite = true;
    for (std::int64_t part = 0; part < parts_of<T>; ++part) {
      const Real magnitude = std::abs(reinterpret_cast<const Real*>(&x)[part]);
      is_large = is_large && magnitude >= least_;
      all_finite = all_finite && magnitude <= std::numeric_limits<Real>::max();
    }
    if (!all_finite || is_large) return all_finite;
    find_operand_ranges();
    return cannot_underflow(rows_[i], columns_[j]);
  }

  bool is_finite(std::int64_t i, std::int64_t j) {
    find_operand_ranges();
    return rows_[i].finite() && columns_[j].finite();
  }

  // Returns the recomputed element (i, j).
  T recompute(std::int64_t i, std::int64_t j, const T* c) {
    if (is_finite(i, j)) return recomputed_element(check_, i, j, c);
    return special_element<T>(check_.a, check_.b, i, j, check_.alpha, check_.beta, c);
  }

 private:
  using Real = RealOf<T>;

  bool cannot_underflow(const ValueRange& a, const ValueRange& b) const {
    return a.finite() && b.finite() && a.least * b.least >= limits_.product;
  }

  ValueRange range_of_all(const std::array<ValueRange, tile>& ranges) {
    find_operand_ranges();
    ValueRange all;
    for (const ValueRange& range : ranges) all += range;
    return all;
  }

  void find_operand_ranges() {
    if (has_operand_ranges_) return;
    has_operand_ranges_ = true;
    find_ranges_of_rows(elements_of(check_.a), rows_.data());
    find_ranges_of_rows(elements_of(check_.b), columns_.data());
  }

  const NativeCheck<T>& check_;
  UnderflowLimits limits_;
  Real least_;
  bool has_operand_ranges_ = false;
  std::array<ValueRange, tile> rows_;
  std::array<ValueRange, tile> columns_;
};

// Calls visit(p) for p = 0 ... pieces - 1 in parallel, and combines the results by +=. Each piece should be
// enough work for a thread.
template <class Result, class Visit>
Result reduce_over_pieces(std::int64_t pieces, int threads, const Visit& visit) {
  Result result{};
  const int workers = workers_for(pieces, threads);
  if (workers == 1) {
    for (std::int64_t p = 0; p < pieces; ++p) result += visit(p);
    return result;
  }
#pragma omp parallel for num_threads(workers) schedule(dynamic)
  for (std::int64_t p = 0; p < pieces; ++p) {
    const FloatingEnvironment environment;
    const Result piece_result = visit(p);
#pragma omp critical
    result += piece_result;
  }
  return result;
}

// Cuts a matrix into runs of contiguous numbers, calls visit(x, count) for each run in parallel, and combines
// the results by +=.
template <class Result, class T, class Visit>
Result reduce_over_runs(const MatrixView<T>& matrix, int threads, const Visit& visit) {
  const auto lines = lines_of(matrix);
  const std::int64_t runs = divide_up(lines.length, max_run);
  const std::int64_t lines_per_piece = std::max(max_run / lines.length, std::int64_t{1});
  const std::int64_t pieces = runs * divide_up(lines.count, lines_per_piece);
  return reduce_over_pieces<Result>(pieces, threads, [&](std::int64_t piece) {
    Result result{};
    const std::int64_t first = piece % runs * max_run;
    const std::int64_t line = piece / runs * lines_per_piece;
    for (std::int64_t l = line; l < std::min(line + lines_per_piece, lines.count); ++l)
      result += visit(lines.line(l) + first, std::min(max_run, lines.length - first));
    return result;
  });
}

// Calls visit(i, j, rows, columns) for all tiles in parallel. Returns the sum of the results.
template <class Visit>
std::int64_t sum_over_tiles(std::int64_t rows, std::int64_t columns, int threads, const Visit& visit) {
  const std::int64_t tile_rows = divide_up(rows, tile);
  return reduce_over_pieces<std::int64_t>(tile_rows * divide_up(columns, tile), threads, [&](std::int64_t t) {
    const std::int64_t i = t % tile_rows * tile;
    const std::int64_t j = t / tile_rows * tile;
    return visit(i, j, std::min(tile, rows - i), std::min(tile, columns - j));
  });
}

template <class T>
ValueRange range_of_matrix(const MatrixView<T>& matrix, int threads) {
  return reduce_over_runs<ValueRange>(matrix, threads,
                                      [](const auto* x, std::int64_t count) { return range_of(x, count); });
}

// True if all elements are finite and their magnitudes reach the limit for sums.
template <class T>
bool are_large(const MatrixView<T>& results, const UnderflowLimits& limits, int threads) {
  const auto least = static_cast<RealOf<T>>(limits.sum);
  return reduce_over_runs<int>(results, threads, [&](const auto* x, std::int64_t count) {
           return all_at_least(x, count, least) ? 0 : 1;
         }) == 0;
}

// Cuts a matrix into runs of contiguous numbers, and calls visit(x, count) for each run in parallel.
template <class T, class Visit>
void for_each_run(const MatrixView<T>& matrix, int threads, const Visit& visit) {
  reduce_over_runs<int>(matrix, threads, [&](auto* x, std::int64_t count) {
    visit(x, count);
    return 0;
  });
}

// Multiplies every element by a real factor, rounded once.
template <class T>
void scale(const MatrixView<T>& c, RealOf<T> factor, int threads) {
  if (factor == 1) return;
  for_each_run(c, threads, [&](auto* x, std::int64_t count) {
    for (std::int64_t l = 0; l < count; ++l) x[l] *= factor;
  });
}

template <class T>
bool is_real(const T& x) {
  if constexpr (is_complex<T>) {
    return x.imag() == 0;
  } else {
    return true;
  }
}

template <class T>
std::int64_t finish_tile(const NativeCheck<T>& check, const UnderflowLimits& limits,
                         const MatrixView<T>& sums, T factor) {
  TileCheck<T> elements(check, limits);
  const bool all_valid = elements.are_valid(sums);
  if (all_valid && is_real(factor) && sums.data == check.c.data) {
    constexpr int one_thread = 1;
    scale(check.c, std::real(factor), one_thread);
    return 0;
  }
  std::int64_t recomputed_count = 0;
  for (std::int64_t j = 0; j < sums.columns; ++j) {
    for (std::int64_t i = 0; i < sums.rows; ++i) {
      T& c = check.c(i, j);
      const T* old = check.beta == T(0) ? nullptr : &c;
      const bool valid = all_valid || elements.is_valid(sums(i, j), i, j);
      recomputed_count += valid ? 0 : 1;
      c = valid ? epilogue_of(sums(i, j), factor, check.beta, old) : elements.recompute(i, j, old);
    }
  }
  return recomputed_count;
}

template <class T>
std::int64_t finish_totals_of_tile(const NativeCheck<T>& check, const UnderflowLimits& limits) {
  TileCheck<T> elements(check, limits);
  if (elements.are_valid(check.c)) return 0;
  std::int64_t recomputed_count = 0;
  for (std::int64_t j = 0; j < check.c.columns; ++j) {
    for (std::int64_t i = 0; i < check.c.rows; ++i) {
      T& c = check.c(i, j);
      if (elements.is_valid(c, i, j)) continue;
      // An element may stay in two cases. Either it is not finite: then the products, or the old element
      // times beta, overflow. Or (|A||B|)_ij reaches the limit: then underflow has lost nothing that counts.
      // An element that is recomputed had the old value zero. Its product with beta was below 7 limits, and
      // can_add_natively() requires that this product is zero or at least 8 limits.
      if (elements.is_finite(i, j) && (!std::isfinite(c) || sum_of_magnitudes(check, i, j) >= limits.sum))
        continue;
      c = elements.recompute(i, j, nullptr);  // nullptr: beta times the old element is zero
      ++recomputed_count;
    }
  }
  return recomputed_count;
}

template <class T>
ValueRange range_of_scalar(const T& x) {
  return range_of(reinterpret_cast<const RealOf<T>*>(&x), parts_of<T>);
}

}  // namespace

template <class T>
std::int64_t finish_native_sums(const NativeCheck<T>& check, const MatrixView<T>& sums, T factor) {
  const UnderflowLimits limits = limits_of(check);
  if (is_real(factor) && sums.data == check.c.data) {
    NativeCheck<T> unscaled = check;
    unscaled.alpha = T(1);
    if (are_large(sums, limits, check.threads) || is_harmless_natively(unscaled)) {
      scale(check.c, std::real(factor), check.threads);
      return 0;
    }
  }
  return sum_over_tiles(check.c.rows, check.c.columns, check.threads,
                        [&](std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) {
                          return finish_tile(check.block(i, j, rows, columns), limits,
                                             sums.block(i, j, rows, columns), factor);
                        });
}

template <class T>
bool can_add_natively(const NativeCheck<T>& check) {
  const UnderflowLimits limits = limits_of(check);
  const double products = static_cast<double>(check.a.columns + 1);
  const double beta = std::abs(static_cast<double>(check.beta));
  const bool short_sums = 2 * products * std::numeric_limits<T>::epsilon() <= 1;
  return short_sums && beta > 0 && std::isfinite(beta) &&
         range_of_matrix(check.c, check.threads).all_zero_or_at_least(8 * limits.sum / beta);
}

template <class T>
std::int64_t finish_native_totals(const NativeCheck<T>& check) {
  const UnderflowLimits limits = limits_of(check);
  if (are_large(check.c, limits, check.threads)) return 0;
  return sum_over_tiles(check.c.rows, check.c.columns, check.threads,
                        [&](std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) {
                          return finish_totals_of_tile(check.block(i, j, rows, columns), limits);
                        });
}

template <class T>
bool is_harmless_natively(const NativeCheck<T>& check) {
  using Real = RealOf<T>;
  const UnderflowLimits limits = limits_of(check);
  const ValueRange alpha = range_of_scalar(check.alpha);
  if (!alpha.finite() || !range_of_scalar(check.beta).finite()) return false;
  const ValueRange a = range_of_matrix(elements_of(check.a), check.threads);
  const ValueRange b = range_of_matrix(elements_of(check.b), check.threads);
  if (!a.finite() || !b.finite()) return false;
  if (a.least * b.least < limits.product) return false;
  const double max_magnitude = static_cast<double>(std::numeric_limits<Real>::max()) / 8;
  const auto products = static_cast<double>(check.a.columns);
  if (a.largest * b.largest * products > max_magnitude) return false;
  if (check.alpha != T(1) && check.alpha != T(-1)) {  // some libraries multiply A or B by alpha first
    const double least = std::min({a.least, b.least, a.least * b.least});
    const double largest = std::max({a.largest, b.largest, a.largest * b.largest * products});
    if (alpha.least * least < limits.product || alpha.largest * largest > max_magnitude) return false;
  }
  if constexpr (is_complex<T>) {  // in some libraries beta times an infinite part makes the other part NaN
    if (check.beta != T(0) && check.beta != T(1)) return range_of_matrix(check.c, check.threads).finite();
  }
  return true;
}

template std::int64_t finish_native_sums(const NativeCheck<float>&, const MatrixView<float>&, float);
template std::int64_t finish_native_sums(const NativeCheck<double>&, const MatrixView<double>&, double);
template std::int64_t finish_native_sums(const NativeCheck<std::complex<float>>&,
                                         const MatrixView<std::complex<float>>&, std::complex<float>);
template std::int64_t finish_native_sums(const NativeCheck<std::complex<double>>&,
                                         const MatrixView<std::complex<double>>&, std::complex<double>);
template bool can_add_natively(const NativeCheck<float>&);
template bool can_add_natively(const NativeCheck<double>&);
template std::int64_t finish_native_totals(const NativeCheck<float>&);
template std::int64_t finish_native_totals(const NativeCheck<double>&);
template bool is_harmless_natively(const NativeCheck<float>&);
template bool is_harmless_natively(const NativeCheck<double>&);
template bool is_harmless_natively(const NativeCheck<std::complex<float>>&);
template bool is_harmless_natively(const NativeCheck<std::complex<double>>&);

}  // namespace kintsugi::core
