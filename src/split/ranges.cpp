#include "split/ranges.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "split/magnitudes.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Extends the ranges of vectors first ... last - 1 by all of their elements.
template <class View>
void extend_block(const View& operand, std::span<const double> inner_factors, std::int64_t first,
                  std::int64_t last, std::span<VectorRange> ranges) {
  for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t p, auto x) {
    const double element = leading_part(x);
    extend(ranges[v], inner_factors.empty() ? element : element * inner_factors[p]);
  });
}

// Like extend_block(), for real operands without factors. Exponents and raised exponents grow with the
// magnitude, so a vector's range follows from its largest and its smallest element. Vectors with NaN or
// infinities are read element by element.
template <class T>
void extend_block_by_magnitudes(const MatrixView<const T>& operand, std::int64_t first, std::int64_t last,
                                std::span<VectorRange> ranges) {
  const Magnitudes<T> magnitudes = find_magnitudes(operand.vectors(first, last - first));
  const auto infinity = std::bit_cast<MagnitudeBits<T>>(std::numeric_limits<T>::infinity());
  for (std::int64_t v = first; v < last; ++v) {
    const auto index = static_cast<std::size_t>(v - first);
    if (magnitudes.largest[index] >= infinity) {
      extend_block(operand, {}, v, v + 1, ranges);
    } else if (magnitudes.largest[index] != 0) {
      extend(ranges[v], std::bit_cast<T>(magnitudes.largest[index]));
      extend(ranges[v], std::bit_cast<T>(magnitudes.below_smallest[index] + 1));
    }
  }
}

template <class View>
inline constexpr bool has_reals =
    std::is_same_v<View, MatrixView<const float>> || std::is_same_v<View, MatrixView<const double>>;

// Extends the ranges of vectors first ... last - 1, by magnitudes if that is possible.
template <class View>
void find_block_ranges(const View& operand, std::span<const double> inner_factors, std::int64_t first,
                       std::int64_t last, std::span<VectorRange> ranges) {
  if constexpr (has_reals<View>) {
    if (inner_factors.empty()) return extend_block_by_magnitudes(operand, first, last, ranges);
  }
  extend_block(operand, inner_factors, first, last, ranges);
}

}  // namespace

template <class View>
void find_ranges(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads,
                 std::span<const double> inner_factors) {
  const std::int64_t blocks = divide_up(operand.rows, vectors_per_block);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * vectors_per_block;
    const std::int64_t last = std::min(operand.rows, first + vectors_per_block);
    std::fill(ranges.begin() + first, ranges.begin() + last, VectorRange{});
    find_block_ranges(operand, inner_factors, first, last, ranges);
    set_scales(ranges.subspan(first, last - first), rule);
  }
}

void set_scales(std::span<VectorRange> ranges, const SplitRule& rule) {
  for (VectorRange& range : ranges) set_scale(range, rule);
  if (rule.kind != SplitKind::tiles) return;
  // The vectors of a panel share the smallest of their scales.
  const auto panel_vectors = static_cast<std::size_t>(rule.tile_vectors);
  for (std::size_t first = 0; first < ranges.size(); first += panel_vectors) {
    const auto panel = ranges.subspan(first, std::min(panel_vectors, ranges.size() - first));
    std::int32_t scale = std::numeric_limits<std::int32_t>::max();
    for (const VectorRange& range : panel) {
      if ((range.flags & VectorRange::all_zero) == 0) scale = std::min(scale, range.scale);
    }
    if (scale == std::numeric_limits<std::int32_t>::max()) scale = 0;
    for (VectorRange& range : panel) range.scale = scale;
  }
}

template void find_ranges(const MatrixView<const float>&, const SplitRule&, std::span<VectorRange>, int,
                          std::span<const double>);
template void find_ranges(const MatrixView<const double>&, const SplitRule&, std::span<VectorRange>, int,
                          std::span<const double>);
template void find_ranges(const MatrixView<const DoubleDouble>&, const SplitRule&, std::span<VectorRange>,
                          int, std::span<const double>);
template void find_ranges(const EmbeddedView<float>&, const SplitRule&, std::span<VectorRange>, int,
                          std::span<const double>);
template void find_ranges(const EmbeddedView<double>&, const SplitRule&, std::span<VectorRange>, int,
                          std::span<const double>);

RangeSummary summarize(std::span<const VectorRange> ranges) {
  RangeSummary summary;
  bool has_vectors = false;
  for (const VectorRange& range : ranges) {
    summary.finite = summary.finite && range.finite();
    if ((range.flags & VectorRange::all_zero) != 0) continue;
    summary.dynamic_range = std::max(summary.dynamic_range, range.dynamic_range());
    summary.min_elements = std::min(summary.min_elements, range.elements);
    summary.depth = std::max(summary.depth, range.depth);
    summary.largest = has_vectors ? std::max(summary.largest, range.largest) : range.largest;
    summary.smallest = has_vectors ? std::min(summary.smallest, range.smallest) : range.smallest;
    has_vectors = true;
  }
  return summary;
}

}  // namespace kintsugi::core
