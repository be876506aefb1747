#include "split/ranges.hpp"

#include <algorithm>

#include "base/floating_environment.hpp"
#include "base/workers.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

template <class View>
void find_ranges(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads,
                 std::span<const double> inner) {
  const std::int64_t blocks = divide_up(operand.rows, vectors_per_block);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * vectors_per_block;
    const std::int64_t last = std::min(operand.rows, first + vectors_per_block);
    std::fill(ranges.begin() + first, ranges.begin() + last, VectorRange{});
    for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t p, auto x) {
      const double element = leading_part(x);
      extend(ranges[v], inner.empty() ? element : element * inner[p]);
    });
    for (std::int64_t v = first; v < last; ++v) set_scale(ranges[v], rule);
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
  bool any = false;
  for (const VectorRange& range : ranges) {
    summary.finite = summary.finite && range.finite();
    if ((range.flags & VectorRange::all_zero) != 0) continue;
    summary.dynamic_range = std::max(summary.dynamic_range, range.dynamic_range());
    summary.min_elements = std::min(summary.min_elements, range.elements);
    summary.depth = std::max(summary.depth, range.depth);
    summary.largest = any ? std::max(summary.largest, range.largest) : range.largest;
    summary.smallest = any ? std::min(summary.smallest, range.smallest) : range.smallest;
    any = true;
  }
  return summary;
}

}  // namespace kintsugi::core
