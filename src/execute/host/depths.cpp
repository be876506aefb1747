#include "execute/host/depths.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/threads/workers.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Number of a vector's non-zero elements, and the sum of their exponents.
struct ExponentSum {
  std::int64_t elements = 0;
  std::int64_t sum = 0;
};

void set_depth(VectorRange& range, const ExponentSum& exponents) {
  const std::int64_t depth = exponents.elements * range.largest - exponents.sum;
  const bool is_known =
      exponents.elements <= std::numeric_limits<std::int32_t>::max() && depth < VectorRange::unknown_depth;
  range.elements = is_known ? static_cast<std::int32_t>(exponents.elements) : 0;
  range.depth = is_known ? static_cast<std::int32_t>(depth) : VectorRange::unknown_depth;
}

}  // namespace

template <class View>
void find_depths(const View& operand, std::span<VectorRange> ranges, int threads) {
  const std::int64_t blocks = (operand.rows + vectors_per_block - 1) / vectors_per_block;
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block * vectors_per_block;
    const std::int64_t last = std::min(operand.rows, first + vectors_per_block);
    std::array<ExponentSum, vectors_per_block> exponents{};
    for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t, auto x) {
      const double element = finite_or_zero(x);
      ExponentSum& exponents_of_vector = exponents[static_cast<std::size_t>(v - first)];
      // Most elements are normal numbers, which need only this branch.
      const auto biased = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(element) >> 52 & 0x7ff);
      if (biased != 0) {
        ++exponents_of_vector.elements;
        exponents_of_vector.sum += biased - 1023;
      } else if (element != 0) {
        ++exponents_of_vector.elements;
        exponents_of_vector.sum += exponent_of(element);
      }
    });
    for (std::int64_t v = first; v < last; ++v) {
      VectorRange& range = ranges[static_cast<std::size_t>(v)];
      if ((range.flags & VectorRange::all_zero) == 0)
        set_depth(range, exponents[static_cast<std::size_t>(v - first)]);
    }
  }
}

template void find_depths(const MatrixView<const float>&, std::span<VectorRange>, int);
template void find_depths(const MatrixView<const double>&, std::span<VectorRange>, int);
template void find_depths(const MatrixView<const DoubleDouble>&, std::span<VectorRange>, int);
template void find_depths(const EmbeddedView<float>&, std::span<VectorRange>, int);
template void find_depths(const EmbeddedView<double>&, std::span<VectorRange>, int);

}  // namespace kintsugi::core
