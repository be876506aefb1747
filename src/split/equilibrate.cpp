#include "split/equilibrate.hpp"

#include <algorithm>
#include <array>

#include "arith/range.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "split/ranges.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Inner indices per loop iteration. They are whole cache lines if the operand's vectors are contiguous.
constexpr std::int64_t indices_per_block = 64;

// Constants of the format double.
constexpr int largest_exponent = 1023;
constexpr int last_bit = -1074;    // exponent of the smallest subnormal number
constexpr int fraction_bits = 52;  // without the implicit bit

template <class T>
void extend(InnerRange& range, T x) {
  if (x == T(0) || x - x != T(0)) return;
  const int exponent = exponent_of(x);
  range.largest = std::max(range.largest, exponent);
  range.smallest = std::min(range.smallest, exponent);
}

// Extends a range by a double-double number. `smallest` takes the low word into account, whose last bit must
// be kept.
void extend(InnerRange& range, const DoubleDouble& pair) {
  const DoubleDouble x = normalized(pair);
  extend(range, x.hi);
  if (is_finite(x.hi) && x.lo != 0) range.smallest = std::min(range.smallest, exponent_of(x.lo));
}

// least_shift() and largest_shift() return the limits of d between which x 2^-d is exact for every x of the
// range.
std::int32_t least_shift(const InnerRange& range) { return range.largest - largest_exponent; }
std::int32_t largest_shift(const InnerRange& range) {
  return std::max(range.smallest - fraction_bits, last_bit) - last_bit;
}

}  // namespace

namespace {

// Extends the ranges of inner indices first ... last - 1.
template <class View>
void extend_inner_ranges(const View& operand, std::int64_t first, std::int64_t last,
                         std::span<InnerRange> ranges) {
  if (element_stride(operand) == 1) {
    for (std::int64_t v = 0; v < operand.rows; ++v) {
      for (std::int64_t p = first; p < last; ++p) extend(ranges[p], operand(v, p));
    }
  } else {
    for (std::int64_t p = first; p < last; ++p) {
      for (std::int64_t v = 0; v < operand.rows; ++v) extend(ranges[p], operand(v, p));
    }
  }
}

// The same for real elements, whose inner indices are the vectors of the transpose.
template <class T>
void extend_inner_ranges(const MatrixView<const T>& operand, std::int64_t first, std::int64_t last,
                         std::span<InnerRange> ranges) {
  if constexpr (is_double_double<T>) {
    extend_inner_ranges<MatrixView<const T>>(operand, first, last, ranges);
  } else {
    std::array<VectorRange, vectors_per_block> found;
    for (std::int64_t p = first; p < last; p += vectors_per_block) {
      const std::int64_t count = std::min(vectors_per_block, last - p);
      const std::span few = std::span(found).first(static_cast<std::size_t>(count));
      find_few_ranges(operand.transposed().vectors(p, count), few);
      for (std::int64_t i = 0; i < count; ++i) ranges[p + i] = {found[i].largest, found[i].smallest};
    }
  }
}

}  // namespace

template <class View>
void find_inner_ranges(const View& operand, std::span<InnerRange> ranges, int threads) {
  const std::int64_t blocks = divide_up(operand.columns, indices_per_block);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * indices_per_block;
    const std::int64_t last = std::min(operand.columns, first + indices_per_block);
    std::fill(ranges.begin() + first, ranges.begin() + last, InnerRange{});
    extend_inner_ranges(operand, first, last, ranges);
  }
}

void merge_ranges_of_parts(std::span<InnerRange> ranges) {
  for (std::size_t p = 0; p < ranges.size(); p += 2) {
    InnerRange& range = ranges[p];
    range.largest = std::max(range.largest, ranges[p + 1].largest);
    range.smallest = std::min(range.smallest, ranges[p + 1].smallest);
    ranges[p + 1] = range;
  }
}

int find_inner_factors(std::span<const InnerRange> a, std::span<const InnerRange> b,
                       std::span<double> factors_a, std::span<double> factors_b) {
  int smallest = std::numeric_limits<int>::max();
  int largest = std::numeric_limits<int>::min();
  for (std::size_t p = 0; p < a.size(); ++p) {
    if (!a[p].has_elements() || !b[p].has_elements()) continue;
    smallest = std::min(smallest, a[p].largest - b[p].largest);
    largest = std::max(largest, a[p].largest - b[p].largest);
  }
  // The middle of the ratios' exponents is subtracted. If all of A or B is multiplied by a power of two, the
  // middle changes by the same exponent, so every d_p stays the same.
  const int middle = largest < smallest ? 0 : (largest + smallest) >> 1;
  for (std::size_t p = 0; p < a.size(); ++p) {
    int d = 0;  // d_p of find_inner_factors()
    if (a[p].has_elements() && b[p].has_elements()) {
      d = (a[p].largest - b[p].largest - middle) >> 1;
      d = std::clamp(d, std::max(least_shift(a[p]), -largest_shift(b[p])),
                     std::min(largest_shift(a[p]), -least_shift(b[p])));
      d = std::clamp(d, -largest_exponent + 1, largest_exponent - 1);
    }
    factors_a[p] = power_of_two(-d);
    factors_b[p] = power_of_two(d);
  }
  return largest < smallest ? 0 : (largest - smallest) / 2;
}

#define INSTANTIATE(View) template void find_inner_ranges(const View&, std::span<InnerRange>, int);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
