#include "tools/measure/metrics.hpp"

#include <omp.h>

#include <cmath>
#include <numeric>
#include <random>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/status.hpp"
#include "tools/measure/native_difference.hpp"

namespace kintsugi::measure {

namespace {

// Returns indices with the first and the last at positions 0 and 1 and the others in random order.
std::vector<std::int64_t> shuffled(std::int64_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (count > 2) std::swap(order[1], order[count - 1]);
  // std::shuffle is not used, since its order depends on the C++ library.
  for (std::int64_t i = 2; i < count; ++i) {
    const auto remaining = static_cast<std::uint64_t>(count - i);
    std::swap(order[i], order[i + static_cast<std::int64_t>(random() % remaining)]);
  }
  return order;
}

Selection select_all(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t tile_size = 16;
  Selection all{.rows = std::vector<std::int64_t>(static_cast<std::size_t>(m)),
                .columns = std::vector<std::int64_t>(static_cast<std::size_t>(n)),
                .tile_size = tile_size,
                .tiles = {},
                .elements = m * n};
  std::iota(all.rows.begin(), all.rows.end(), std::int64_t{0});
  std::iota(all.columns.begin(), all.columns.end(), std::int64_t{0});
  all.tiles.resize(static_cast<std::size_t>(core::divide_up(m, tile_size) * core::divide_up(n, tile_size)));
  std::iota(all.tiles.begin(), all.tiles.end(), std::int64_t{0});
  return all;
}

// Selects tiles of 4 x 4 until the wanted number of elements is reached; tile 0 contains the corners.
Selection select_sample(std::int64_t m, std::int64_t n, std::int64_t wanted, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Selection sample;
  sample.rows = shuffled(m, random);
  sample.columns = shuffled(n, random);
  sample.tile_size = 4;
  const auto tiles = static_cast<std::uint64_t>(core::divide_up(m, 4) * sample.tiles_across());
  std::unordered_set<std::int64_t> chosen;
  for (std::int64_t tile = 0; sample.elements < wanted; tile = static_cast<std::int64_t>(random() % tiles)) {
    if (!chosen.insert(tile).second) continue;
    sample.tiles.push_back(tile);
    sample.elements += sample.row_count(tile) * sample.column_count(tile);
  }
  return sample;
}

using core::MatrixView;
using core::Status;

constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- one element ----

// Comparison of one computed element of C with the exact one, by the rules of ErrorReport.
struct Judged {
  ElementError element;
  bool correctly_rounded = false;
  bool zero_reference = false;
  bool overflowed = false;
  bool special_reference = false;
  bool special_mismatch = false;
  bool within_bound = true;
  long double error_square = 0;  // long double holds the squares of all doubles
  long double exact_square = 0;
};

template <class T>
struct TypeTraits {
  static constexpr int precision = std::numeric_limits<T>::digits;
  static constexpr int smallest_normal_exponent = std::numeric_limits<T>::min_exponent - 1;
};

// lo is at most half of hi's last place, and has 53 bits below that.
template <>
struct TypeTraits<core::DoubleDouble> : TypeTraits<double> {
  static constexpr int precision = 107;
};

template <class T>
using LastWord = std::conditional_t<core::is_double_double<T>, double, T>;

long double squared(const Scaled& x) {
  const long double value = std::ldexp(static_cast<long double>(x.fraction), static_cast<int>(x.exponent));
  return value * value;
}

bool same_special(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

template <class T>
bool is_same_number(const T& x, const T& y) {
  if constexpr (core::is_double_double<T>) {
    return core::normalized(x) == y;
  } else {
    return x == y;
  }
}

// Judges an element if R or C is NaN or infinite, or R overflows C's type.
template <class T>
void judge_special(const ElementReference<T>& reference, core::RoundingMode rounding, Judged& judged) {
  ElementError& element = judged.element;
  judged.special_reference = !reference.sum().is_finite();
  const double rounded = core::leading_part(reference.rounded(rounding));
  if (same_special(rounded, element.computed)) {
    judged.correctly_rounded = true;
    judged.overflowed = !judged.special_reference;
    return;
  }
  judged.special_mismatch = true;
  judged.zero_reference = reference.sum().is_zero();
  judged.within_bound = false;
  element.error = element.computed - element.exact;
  if (!std::isnan(element.error) && !std::isinf(element.error)) element.error = infinity;
  element.relative = infinity;
  element.ulp = infinity;
  judged.error_square = std::numeric_limits<long double>::infinity();
}

template <class T>
void judge_finite(const ElementReference<T>& reference, T computed, double bound, double underflow,
                  core::RoundingMode rounding, Judged& judged) {
  ElementError& element = judged.element;
  const ExactSum error_sum = reference.error_of(computed);
  const Scaled error = error_sum.to_scaled();
  const Scaled exact = reference.sum().to_scaled();
  element.error = error_sum.to_double();
  judged.correctly_rounded = is_same_number(computed, reference.rounded(rounding));
  judged.zero_reference = exact.fraction == 0;
  std::int64_t last_place = TypeTraits<T>::smallest_normal_exponent;
  constexpr std::int64_t min_place =
      TypeTraits<T>::smallest_normal_exponent - std::numeric_limits<LastWord<T>>::digits + 1;
  if (judged.zero_reference) {
    element.relative = error.fraction == 0 ? 0 : infinity;
  } else {
    element.relative = magnitude_ratio(error, exact);
    last_place = std::max(last_place, reference.sum().exponent());
  }
  last_place = std::max(last_place - (TypeTraits<T>::precision - 1), min_place);
  element.ulp = magnitude_ratio(error, {0.5, last_place + 1});
  judged.within_bound = std::fabs(element.error) <= bound * element.absolute + underflow;
  judged.error_square = squared(error);
  judged.exact_square = squared(exact);
}

// Judges an element. `bound`: the contract's coefficient; `underflow`: its absolute term.
template <class T>
Judged judge(const ElementReference<T>& reference, T computed, double bound, double underflow,
             core::RoundingMode rounding) {
  Judged judged;
  const ExactElement exact = reference.element();
  judged.element.computed = core::leading_part(computed);
  judged.element.exact = exact.value;
  judged.element.absolute = exact.absolute;
  if (!core::is_finite(judged.element.computed) || !reference.sum().is_finite()) {
    judge_special(reference, rounding, judged);
  } else {
    judge_finite(reference, computed, bound, underflow, rounding, judged);
  }
  return judged;
}

// Returns |C - R| / (|alpha| |A||B| + |beta C0|).
double componentwise(const Judged& judged) {
  if (judged.special_mismatch) return infinity;
  const double error = std::fabs(judged.element.error);
  if (error == 0 || judged.special_reference) return 0;
  return error / judged.element.absolute;  // infinite if absolute is 0; 0 if it is infinite
}

// ---- sums over elements ----

// Sums over one tile. Tiles are merged in their order, so threads cannot change a bit.
struct Partial {
  ErrorReport report;
  long double error_square = 0;
  long double exact_square = 0;
  long double relative_sum = 0;
  std::int64_t relative_count = 0;
  std::int64_t correctly_rounded = 0;
  long double native_sum = 0;  // sum of the terms of Eq. 20
  std::int64_t native_count = 0;
  std::vector<ElementError> elements;
};

void raise(double& largest, double value) {
  largest = std::isnan(value) ? infinity : std::max(largest, value);
}

void add_element(const Judged& judged, Partial& partial) {
  ErrorReport& report = partial.report;
  const ElementError& element = judged.element;
  raise(report.max_relative, element.relative);
  raise(report.max_componentwise, componentwise(judged));
  raise(report.max_ulp, element.ulp);
  raise(report.largest_error, std::fabs(element.error));
  if (!std::isnan(element.absolute)) raise(report.largest_absolute, element.absolute);
  report.within_contract_bound = report.within_contract_bound && judged.within_bound;
  report.elements_checked += 1;
  report.zero_references += judged.zero_reference ? 1 : 0;
  report.nonzero_at_zero_reference += judged.zero_reference && element.computed != 0 ? 1 : 0;
  report.overflowed_references += judged.overflowed ? 1 : 0;
  report.special_references += judged.special_reference ? 1 : 0;
  report.special_mismatches += judged.special_mismatch ? 1 : 0;
  partial.correctly_rounded += judged.correctly_rounded ? 1 : 0;
  partial.error_square += judged.error_square;
  partial.exact_square += judged.exact_square;
  const bool no_error_by_rule = judged.zero_reference || judged.overflowed || judged.special_reference;
  const bool in_mean = judged.special_mismatch || !no_error_by_rule;
  if (in_mean) {
    partial.relative_sum += static_cast<long double>(element.relative);
    partial.relative_count += 1;
  }
}

void add_native(double computed, double native, Partial& partial) {
  raise(partial.report.le_gemm_max_error, symmetric_difference(computed, native));
  if (native == 0) return;
  partial.native_sum += static_cast<long double>(std::fabs(relative_difference(computed, native)));
  partial.native_count += 1;
}

void merge(const Partial& tile, Partial& total) {
  ErrorReport& report = total.report;
  raise(report.max_relative, tile.report.max_relative);
  raise(report.max_componentwise, tile.report.max_componentwise);
  raise(report.max_ulp, tile.report.max_ulp);
  raise(report.largest_error, tile.report.largest_error);
  raise(report.largest_absolute, tile.report.largest_absolute);
  raise(report.le_gemm_max_error, tile.report.le_gemm_max_error);
  report.within_contract_bound = report.within_contract_bound && tile.report.within_contract_bound;
  report.elements_checked += tile.report.elements_checked;
  report.zero_references += tile.report.zero_references;
  report.nonzero_at_zero_reference += tile.report.nonzero_at_zero_reference;
  report.overflowed_references += tile.report.overflowed_references;
  report.special_references += tile.report.special_references;
  report.special_mismatches += tile.report.special_mismatches;
  total.error_square += tile.error_square;
  total.exact_square += tile.exact_square;
  total.relative_sum += tile.relative_sum;
  total.relative_count += tile.relative_count;
  total.correctly_rounded += tile.correctly_rounded;
  total.native_sum += tile.native_sum;
  total.native_count += tile.native_count;
}

double mean(long double sum, std::int64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum / static_cast<long double>(count));
}

void finish(Partial& total, bool native_given) {
  ErrorReport& report = total.report;
  if (total.error_square > 0) {
    const long double ratio = std::sqrt(total.error_square) / std::sqrt(total.exact_square);
    report.frobenius_relative = std::isnan(ratio) ? infinity : static_cast<double>(ratio);
  }
  report.mean_relative = mean(total.relative_sum, total.relative_count);
  if (report.elements_checked > 0) {
    report.correctly_rounded_fraction =
        static_cast<double>(total.correctly_rounded) / static_cast<double>(report.elements_checked);
  }
  report.le_gemm_mred = mean(total.native_sum, total.native_count);
  if (!native_given)
    report.le_gemm_max_error = report.le_gemm_mred = std::numeric_limits<double>::quiet_NaN();
}

// ---- tiles ----

template <class T>
struct Inputs {
  Inputs(const Product<T>& in_product, MatrixView<const T> in_c, MatrixView<const T> in_native, bool keep)
      : product(in_product), c(in_c), native(in_native), k(product.multiplies() ? product.a.columns : 0),
        keep_elements(keep) {
    constexpr int bits = core::is_double_double<T> ? 104 : std::numeric_limits<T>::digits;
    bound = static_cast<double>(k + 8) * std::ldexp(1.0, -bits);
    underflow =
        contract_underflow<T>(std::fabs(core::leading_part(product.alpha)) + std::fabs(product.alpha_im), k);
  }

  const Product<T>& product;
  MatrixView<const T> c;
  MatrixView<const T> native;
  std::int64_t k;
  double bound;
  double underflow;
  bool keep_elements;
  core::RoundingMode rounding = core::RoundingMode::nearest;
};

// Contiguous copies of a tile's rows of op(A) and columns of op(B).
template <class T>
struct Buffers {
  std::vector<T> rows;
  std::vector<T> columns;
  std::vector<T> crossed;  // columns j ^ 1, the other part of complex ones, if alpha or beta need them
  std::vector<ElementReference<T>> references;
};

template <class T>
void gather(const Inputs<T>& in, const Selection& selection, std::int64_t tile, Buffers<T>& buffers) {
  for (std::int64_t r = 0; r < selection.row_count(tile); ++r) {
    const std::int64_t i = selection.rows[selection.first_row(tile) + r];
    for (std::int64_t l = 0; l < in.k; ++l) buffers.rows[r * in.k + l] = in.product.a(i, l);
  }
  for (std::int64_t s = 0; s < selection.column_count(tile); ++s) {
    const std::int64_t j = selection.columns[selection.first_column(tile) + s];
    for (std::int64_t l = 0; l < in.k; ++l) buffers.columns[s * in.k + l] = in.product.b(l, j);
    if (!in.product.crosses()) continue;
    for (std::int64_t l = 0; l < in.k; ++l) buffers.crossed[s * in.k + l] = in.product.b(l, j ^ 1);
  }
}

// Appends the references of a tile's elements, row by row, to a vector with enough capacity.
template <class T>
void add_references(const Inputs<T>& in, const Selection& selection, std::int64_t tile, Buffers<T>& buffers,
                    std::vector<ElementReference<T>>& references) {
  const std::int64_t columns = selection.column_count(tile);
  const std::int64_t count = selection.element_count(tile);
  gather(in, selection, tile, buffers);
  for (std::int64_t e = 0; e < count; ++e) {
    const std::int64_t i = selection.rows[selection.first_row(tile) + e / columns];
    const std::int64_t j = selection.columns[selection.first_column(tile) + e % columns];
    const std::int64_t column = e % columns * in.k;
    references.push_back(element_reference(in.product, i, j, buffers.rows.data() + e / columns * in.k,
                                           buffers.columns.data() + column,
                                           in.product.crosses() ? buffers.crossed.data() + column : nullptr));
  }
}

template <class T>
void check_tile(const Inputs<T>& in, const Selection& selection, std::int64_t tile,
                const std::vector<ElementReference<T>>& references, Partial& partial) {
  const std::int64_t columns = selection.column_count(tile);
  partial.report.le_gemm_max_error = 0;
  for (std::int64_t e = 0; e < std::ssize(references); ++e) {
    const std::int64_t i = selection.rows[selection.first_row(tile) + e / columns];
    const std::int64_t j = selection.columns[selection.first_column(tile) + e % columns];
    Judged judged =
        judge(references[static_cast<std::size_t>(e)], in.c(i, j), in.bound, in.underflow, in.rounding);
    judged.element.i = i;
    judged.element.j = j;
    add_element(judged, partial);
    if (in.native.data != nullptr)
      add_native(judged.element.computed, core::leading_part(in.native(i, j)), partial);
    if (in.keep_elements) partial.elements.push_back(judged.element);
  }
}

template <class T>
void check_shapes(const Product<T>& product, const MatrixView<const T>& c,
                  const MatrixView<const T>& native) {
  const auto& [a, b, alpha, beta, c0, alpha_im, beta_im] = product;
  const auto need = [](bool ok, const char* what, const MatrixView<const T>& view, std::int64_t rows,
                       std::int64_t columns) {
    if (ok) return;
    core::fail(Status::invalid_argument, "{} is {} x {} with {} data; {} x {} expected", what, view.rows,
               view.columns, view.data == nullptr ? "no" : "some", rows, columns);
  };
  const auto fits = [](const MatrixView<const T>& view, std::int64_t rows, std::int64_t columns) {
    const bool empty = rows == 0 || columns == 0;
    return view.rows == rows && view.columns == columns && (empty || view.data != nullptr);
  };
  need(c.rows >= 0 && c.columns >= 0 && fits(c, c.rows, c.columns), "C", c, c.rows, c.columns);
  if (product.crosses() && c.columns % 2 != 0)
    core::fail(Status::invalid_argument, "C has {} columns; those of complex elements' parts come in pairs",
               c.columns);
  if (product.multiplies()) {
    need(a.columns >= 0 && fits(a, c.rows, a.columns), "op(A)", a, c.rows, a.columns);
    need(fits(b, a.columns, c.columns), "op(B)", b, a.columns, c.columns);
  }
  if (beta != 0 || beta_im != 0) need(fits(c0, c.rows, c.columns), "C0", c0, c.rows, c.columns);
  if (native.data != nullptr)
    need(fits(native, c.rows, c.columns), "the native result", native, c.rows, c.columns);
}

void report_progress(const CheckOptions& options, std::int64_t& done, std::int64_t newly_done,
                     std::int64_t total) {
  if (!options.progress) return;
#pragma omp critical(kintsugi_measure_progress)
  {
    done += newly_done;
    options.progress(done, total);
  }
}

// Exact products that take about as long as judging one element.
constexpr std::int64_t judging_products = 256;

// Calls work(t, buffers) for tile t of the selection, on several threads if the work is large enough. work()
// must not allocate, since an exception cannot leave a parallel region. Buffers are for vectors of length k.
template <class T, class Work>
void for_each_tile(const Selection& selection, std::int64_t k, bool crosses, const CheckOptions& options,
                   Work&& work) {
  const bool worth_threads = selection.elements * (k + judging_products) > (1 << 18);
  int threads = options.threads;
  if (threads == 0) threads = worth_threads ? omp_get_max_threads() : 1;
  const auto buffer_size = static_cast<std::size_t>(selection.tile_size * k);
  std::vector<Buffers<T>> buffers(static_cast<std::size_t>(threads));
  for (auto& buffer : buffers) {
    buffer.rows.resize(buffer_size);
    buffer.columns.resize(buffer_size);
    buffer.crossed.resize(crosses ? buffer_size : 0);
    buffer.references.reserve(static_cast<std::size_t>(selection.tile_size * selection.tile_size));
  }
  std::int64_t done = 0;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t t = 0; t < std::ssize(selection.tiles); ++t) {
    work(t, buffers[omp_get_thread_num()]);
    const std::int64_t tile = selection.tiles[t];
    report_progress(options, done, selection.element_count(tile), selection.elements);
  }
}

// Returns one partial sum for each tile, with capacity for its elements if they are kept.
std::vector<Partial> make_partials(const Selection& selection, bool keep_elements) {
  std::vector<Partial> partials(selection.tiles.size());
  for (std::size_t t = 0; keep_elements && t < partials.size(); ++t)
    partials[t].elements.reserve(static_cast<std::size_t>(selection.element_count(selection.tiles[t])));
  return partials;
}

template <class T>
ErrorReport summarize(const std::vector<Partial>& partials, const Inputs<T>& in,
                      std::vector<ElementError>* elements) {
  Partial total;
  total.report.elements_total = in.c.rows * in.c.columns;
  total.report.contract_bound = in.bound;
  total.report.contract_underflow = in.underflow;
  total.report.le_gemm_max_error = 0;
  if (elements != nullptr) elements->clear();
  for (const Partial& tile : partials) {
    merge(tile, total);
    if (elements != nullptr) elements->insert(elements->end(), tile.elements.begin(), tile.elements.end());
  }
  finish(total, in.native.data != nullptr);
  return total.report;
}

template <class T>
Selection select(const Product<T>& product, std::int64_t m, std::int64_t n, const CheckOptions& options) {
  if (m == 0 || n == 0) return {};
  const std::int64_t k = product.multiplies() ? product.a.columns : 0;
  return select_elements(m, n, k, options.work_limit, options.max_elements, options.seed);
}

}  // namespace

Selection select_elements(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t work_limit,
                          std::int64_t max_elements, std::uint64_t seed) {
  const double elements = static_cast<double>(m) * static_cast<double>(n);
  const double work = elements * static_cast<double>(std::max<std::int64_t>(k, 1));
  if (work <= static_cast<double>(work_limit) || elements <= static_cast<double>(max_elements))
    return select_all(m, n);
  return select_sample(m, n, std::max<std::int64_t>(max_elements, 1), seed);
}

template <class T>
ErrorReport measure_errors(const Product<T>& product, MatrixView<const T> c, MatrixView<const T> native,
                           const CheckOptions& options) {
  check_shapes(product, c, native);
  Inputs<T> in(product, c, native, options.elements != nullptr);
  in.rounding = options.rounding;
  const Selection selection = select(product, c.rows, c.columns, options);
  std::vector<Partial> partials = make_partials(selection, in.keep_elements);
  for_each_tile<T>(selection, in.k, product.crosses(), options, [&](std::int64_t t, Buffers<T>& buffers) {
    const std::int64_t tile = selection.tiles[t];
    buffers.references.clear();
    add_references(in, selection, tile, buffers, buffers.references);
    check_tile(in, selection, tile, buffers.references, partials[t]);
  });
  return summarize(partials, in, options.elements);
}

template <class T>
ExactReference<T>::ExactReference(const Product<T>& product, std::int64_t m, std::int64_t n,
                                  const CheckOptions& options)
    : product_(product), selection_(select(product, m, n, options)), m_(m), n_(n) {
  const Inputs<T> in(product_, {}, {}, false);
  tiles_.resize(selection_.tiles.size());
  for (std::size_t t = 0; t < tiles_.size(); ++t)
    tiles_[t].reserve(static_cast<std::size_t>(selection_.element_count(selection_.tiles[t])));
  for_each_tile<T>(selection_, in.k, product.crosses(), options, [&](std::int64_t t, Buffers<T>& buffers) {
    add_references(in, selection_, selection_.tiles[t], buffers, tiles_[t]);
  });
}

template <class T>
ErrorReport ExactReference<T>::measure(MatrixView<const T> c, MatrixView<const T> native,
                                       std::vector<ElementError>* elements) const {
  check_shapes(product_, c, native);
  if (c.rows != m_ || c.columns != n_) {
    core::fail(Status::invalid_argument, "C is {} x {}; {} x {} expected", c.rows, c.columns, m_, n_);
  }
  const Inputs<T> in(product_, c, native, elements != nullptr);
  std::vector<Partial> partials = make_partials(selection_, in.keep_elements);
  for_each_tile<T>(selection_, 0, false, {}, [&](std::int64_t t, Buffers<T>&) {
    check_tile(in, selection_, selection_.tiles[t], tiles_[t], partials[t]);
  });
  return summarize(partials, in, elements);
}

template class ExactReference<float>;
template class ExactReference<double>;
template class ExactReference<core::DoubleDouble>;

template ErrorReport measure_errors(const Product<core::DoubleDouble>&, MatrixView<const core::DoubleDouble>,
                                    MatrixView<const core::DoubleDouble>, const CheckOptions&);

template ErrorReport measure_errors(const Product<float>&, MatrixView<const float>, MatrixView<const float>,
                                    const CheckOptions&);

template ErrorReport measure_errors(const Product<double>&, MatrixView<const double>,
                                    MatrixView<const double>, const CheckOptions&);

}  // namespace kintsugi::measure
