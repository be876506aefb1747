#include "split/depths.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/embedding.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"
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

// ------------------------------------------------------------------ vectorized for FP64

// Counts of a block of vectors. `has_others`: there are NaN, infinities or subnormal numbers, whose exponents
// the loops below do not find.
struct BlockCounts {
  std::array<std::uint64_t, vectors_per_block> elements{};
  std::array<std::uint64_t, vectors_per_block> biased_exponents{};
  std::array<std::uint64_t, vectors_per_block> has_others{};
};

inline void count(double x, std::uint64_t& elements, std::uint64_t& biased_exponents,
                  std::uint64_t& has_others) {
  constexpr std::uint64_t above_largest = 0x7ff;
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(x) << 1;
  const std::uint64_t biased = magnitude >> 53;
  const std::uint64_t is_non_zero = magnitude != 0 ? 1 : 0;
  elements += is_non_zero;
  biased_exponents += biased;
  has_others |= is_non_zero & (biased - 1 >= above_largest - 1 ? 1 : 0);  // 0 - 1 wraps around
}

KINTSUGI_VECTORIZED void count_contiguous(const double* vector, std::int64_t length, std::uint64_t& elements,
                                          std::uint64_t& biased_exponents, std::uint64_t& has_others) {
  std::uint64_t of_vector[3] = {};
  for (std::int64_t p = 0; p < length; ++p) count(vector[p], of_vector[0], of_vector[1], of_vector[2]);
  elements = of_vector[0];
  biased_exponents = of_vector[1];
  has_others = of_vector[2];
}

// Counts in vectors whose elements at one inner index are contiguous. The elements at the next inner index
// follow `step` elements later.
KINTSUGI_VECTORIZED void count_interleaved(const double* elements, std::int64_t step, std::int64_t length,
                                           BlockCounts& counts) {
  BlockCounts found;
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t v = 0; v < vectors_per_block; ++v)
      count(elements[p * step + v], found.elements[v], found.biased_exponents[v], found.has_others[v]);
  }
  counts = found;
}

// Returns false if the block needs count_all(), which takes every number and every storage.
template <class View>
bool count_normal(const View&, std::int64_t, std::int64_t, std::array<ExponentSum, vectors_per_block>&) {
  return false;
}
inline bool count_normal(const MatrixView<const double>& operand, std::int64_t first, std::int64_t last,
                         std::array<ExponentSum, vectors_per_block>& exponents) {
  BlockCounts counts;
  if (operand.row_stride == 1 && last - first == vectors_per_block) {
    count_interleaved(&operand(first, 0), operand.column_stride, operand.columns, counts);
  } else if (operand.column_stride == 1) {
    for (std::int64_t v = first; v < last; ++v) {
      const auto i = static_cast<std::size_t>(v - first);
      count_contiguous(&operand(v, 0), operand.columns, counts.elements[i], counts.biased_exponents[i],
                       counts.has_others[i]);
    }
  } else {
    return false;
  }
  for (std::size_t i = 0; i < vectors_per_block; ++i) {
    if (counts.has_others[i] != 0) return false;
    const auto elements = static_cast<std::int64_t>(counts.elements[i]);
    exponents[i] = {elements, static_cast<std::int64_t>(counts.biased_exponents[i]) - 1023 * elements};
  }
  return true;
}

template <class View>
void count_all(const View& operand, std::int64_t first, std::int64_t last,
               std::array<ExponentSum, vectors_per_block>& exponents) {
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
    if (!count_normal(operand, first, last, exponents)) {
      exponents = {};
      count_all(operand, first, last, exponents);
    }
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
