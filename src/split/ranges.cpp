#include "split/ranges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"
#include "split/norms.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Bit patterns of magnitudes as unsigned integers. Their order is the order of the magnitudes. Infinities and
// NaN are above all numbers.
template <class T>
using MagnitudeBits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;

// Largest magnitude of each vector of a block, and the smallest non-zero magnitude minus one unit in the last
// place. A zero minus one wraps around to the largest integer, so zeros do not count in the minimum.
template <class T>
struct Magnitudes {
  std::array<MagnitudeBits<T>, vectors_per_strip> largest{};
  std::array<MagnitudeBits<T>, vectors_per_strip> below_smallest;

  Magnitudes() { below_smallest.fill(~MagnitudeBits<T>{0}); }
};

template <class T>
inline MagnitudeBits<T> magnitude_of(T x) {
  using Bits = MagnitudeBits<T>;
  return std::bit_cast<Bits>(x) & (~Bits{0} >> 1);
}

// The two loops must be inlined into the functions that are compiled for every instruction set: GCC 12 called
// a copy for the oldest one instead, which took a twentieth of a reproducible product of n = 1024.

// Extends the two numbers by the elements of one contiguous vector. The loop uses local copies, so that the
// compiler can vectorise it.
template <class T>
[[gnu::always_inline]] inline void extend_along(const T* vector, std::int64_t length,
                                                MagnitudeBits<T>& largest, MagnitudeBits<T>& below_smallest) {
  MagnitudeBits<T> new_largest = largest;
  MagnitudeBits<T> new_below_smallest = below_smallest;
  for (std::int64_t p = 0; p < length; ++p) {
    const MagnitudeBits<T> magnitude = magnitude_of(vector[p]);
    new_largest = std::max(new_largest, magnitude);
    new_below_smallest = std::min(new_below_smallest, magnitude - 1);
  }
  largest = new_largest;
  below_smallest = new_below_smallest;
}

// Extends `magnitudes` by `count` interleaved vectors. The elements of one inner index are contiguous. The
// elements of the next inner index follow at a distance of `step` elements.
template <class T>
[[gnu::always_inline]] inline void extend_across(const T* elements, std::int64_t step, std::int64_t count,
                                                 std::int64_t length, Magnitudes<T>& magnitudes) {
  Magnitudes<T> found = magnitudes;
  for (std::int64_t p = 0; p < length; ++p) {
    prefetch_row(elements + (p + rows_ahead) * step, count);
    for (std::int64_t v = 0; v < count; ++v) {
      const MagnitudeBits<T> magnitude = magnitude_of(elements[p * step + v]);
      found.largest[v] = std::max(found.largest[v], magnitude);
      found.below_smallest[v] = std::min(found.below_smallest[v], magnitude - 1);
    }
  }
  magnitudes = found;
}

// The following functions compile the loops above for every instruction set. In extend_strip() the number
// of vectors is a constant, so that the compiler unrolls the loop.
KINTSUGI_VECTORIZED void extend_contiguous(const float* vector, std::int64_t length, std::uint32_t& largest,
                                           std::uint32_t& below_smallest) {
  extend_along(vector, length, largest, below_smallest);
}
KINTSUGI_VECTORIZED void extend_contiguous(const double* vector, std::int64_t length, std::uint64_t& largest,
                                           std::uint64_t& below_smallest) {
  extend_along(vector, length, largest, below_smallest);
}
KINTSUGI_VECTORIZED void extend_strip(const float* elements, std::int64_t step, std::int64_t length,
                                      Magnitudes<float>& magnitudes) {
  extend_across(elements, step, vectors_per_strip, length, magnitudes);
}
KINTSUGI_VECTORIZED void extend_strip(const double* elements, std::int64_t step, std::int64_t length,
                                      Magnitudes<double>& magnitudes) {
  extend_across(elements, step, vectors_per_strip, length, magnitudes);
}

// Finds the largest and smallest magnitudes of `vectors`, which has at most vectors_per_strip rows.
template <class T>
Magnitudes<T> magnitudes_of(const MatrixView<const T>& vectors) {
  Magnitudes<T> magnitudes;
  if (vectors.rows == 1 && vectors.column_stride == 1) {  // its row stride may be 1, too
    extend_contiguous(vectors.data, vectors.columns, magnitudes.largest[0], magnitudes.below_smallest[0]);
  } else if (vectors.row_stride == 1 && vectors.rows == vectors_per_strip) {
    extend_strip(vectors.data, vectors.column_stride, vectors.columns, magnitudes);
  } else if (vectors.row_stride == 1) {
    extend_across(vectors.data, vectors.column_stride, vectors.rows, vectors.columns, magnitudes);
  } else if (vectors.column_stride == 1) {
    for (std::int64_t v = 0; v < vectors.rows; ++v)
      extend_contiguous(&vectors(v, 0), vectors.columns, magnitudes.largest[v], magnitudes.below_smallest[v]);
  } else {
    for (std::int64_t v = 0; v < vectors.rows; ++v) {
      for (std::int64_t p = 0; p < vectors.columns; ++p)
        extend_along(&vectors(v, p), 1, magnitudes.largest[v], magnitudes.below_smallest[v]);
    }
  }
  return magnitudes;
}

// Extends the ranges of vectors first ... last - 1 by all of their elements.
template <class View>
void extend_block(const View& operand, std::span<const double> inner_factors, std::int64_t first,
                  std::int64_t last, std::span<VectorRange> ranges) {
  for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t p, auto x) {
    const double element = leading_part(x);
    extend(ranges[v], inner_factors.empty() ? element : element * inner_factors[p]);
  });
}

// Like extend_block(), for operands without factors whose numbers are in real vectors. Exponents and raised
// exponents grow with the magnitude, so a vector's range follows from its largest and its smallest number.
// Vectors with NaN or infinities are read element by element.
template <class View, class T>
void extend_block_by_magnitudes(const View& operand, const NumberVectors<T>& numbers, std::int64_t first,
                                std::int64_t last, std::span<VectorRange> ranges) {
  const auto infinity = std::bit_cast<MagnitudeBits<T>>(std::numeric_limits<T>::infinity());
  const std::int64_t each = numbers.each;
  const std::int64_t embedded = embedded_each(operand);
  for_each_group(first, last, each, embedded, [&](std::int64_t group, std::int64_t count) {
    const Magnitudes<T> magnitudes = magnitudes_of(numbers.vectors.vectors(each * group, each * count));
    for (std::int64_t i = 0; i < embedded * count; ++i) {
      const std::int64_t v = embedded * group + i;
      const auto x = static_cast<std::size_t>(each * (i / embedded));
      const auto y = x + static_cast<std::size_t>(each) - 1;
      const auto largest = std::max(magnitudes.largest[x], magnitudes.largest[y]);
      const auto below_smallest = std::min(magnitudes.below_smallest[x], magnitudes.below_smallest[y]);
      if (largest >= infinity) {
        extend_block(operand, {}, v, v + 1, ranges);
      } else if (largest != 0) {
        extend(ranges[v], std::bit_cast<T>(largest));
        extend(ranges[v], std::bit_cast<T>(below_smallest + 1));
      }
    }
  });
}

// Extends the ranges of vectors first ... last - 1, by magnitudes if that is possible.
template <class View>
void find_block_ranges(const View& operand, std::span<const double> inner_factors, std::int64_t first,
                       std::int64_t last, std::span<VectorRange> ranges) {
  if constexpr (has_numbers<View>) {
    const auto numbers = numbers_of(operand);
    if (inner_factors.empty() && numbers.each > 0)
      return extend_block_by_magnitudes(operand, numbers, first, last, ranges);
  }
  extend_block(operand, inner_factors, first, last, ranges);
}

}  // namespace

template <class View>
void find_ranges(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads,
                 std::span<const double> inner_factors, std::span<VectorNorm> norms) {
  for_each_vector_block(
      operand.rows, threads,
      [&](std::int64_t first, std::int64_t last) {
        std::fill(ranges.begin() + first, ranges.begin() + last, VectorRange{});
        find_block_ranges(operand, inner_factors, first, last, ranges);
        set_scales(ranges.subspan(first, last - first), rule);
        if (!norms.empty()) find_norms(operand, ranges, norms, first, last);
      },
      vectors_at_once(operand, threads));
}

template <class T>
void find_few_ranges(const MatrixView<const T>& vectors, std::span<VectorRange> ranges) {
  std::ranges::fill(ranges, VectorRange{});
  extend_block_by_magnitudes(vectors, numbers_of(vectors), 0, vectors.rows, ranges);
}
template void find_few_ranges(const MatrixView<const float>&, std::span<VectorRange>);
template void find_few_ranges(const MatrixView<const double>&, std::span<VectorRange>);

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

#define INSTANTIATE(View)                                                               \
  template void find_ranges(const View&, const SplitRule&, std::span<VectorRange>, int, \
                            std::span<const double>, std::span<VectorNorm>);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

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

// ---------------------------------------------------------------- mean depths

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

// Adds the counts of vectors first ... last - 1.
template <class View>
void add_exponents(const View& operand, std::int64_t first, std::int64_t last,
                   std::array<ExponentSum, vectors_per_block>& exponents) {
  std::array<ExponentSum, vectors_per_block> added{};
  if (!count_normal(operand, first, last, added)) {
    added = {};
    count_all(operand, first, last, added);
  }
  for (std::size_t i = 0; i < vectors_per_block; ++i) {
    exponents[i].elements += added[i].elements;
    exponents[i].sum += added[i].sum;
  }
}

}  // namespace

template <class View>
void find_depths(const View& operand, std::span<VectorRange> ranges, int threads) {
  constexpr std::int64_t piece = 2048;  // a block's pieces are read twice while the second cache holds them
  for_each_vector_block(operand.rows, threads, [&](std::int64_t first, std::int64_t last) {
    std::fill(ranges.begin() + first, ranges.begin() + last, VectorRange{});
    std::array<ExponentSum, vectors_per_block> exponents{};
    for (std::int64_t begin = 0; begin < operand.columns; begin += piece) {
      const View part = inner_part(operand, begin, std::min(piece, operand.columns - begin));
      find_block_ranges(part, {}, first, last, ranges);
      add_exponents(part, first, last, exponents);
    }
    for (std::int64_t v = first; v < last; ++v) {
      VectorRange& range = ranges[static_cast<std::size_t>(v)];
      if ((range.flags & VectorRange::all_zero) == 0)
        set_depth(range, exponents[static_cast<std::size_t>(v - first)]);
    }
  });
}

#define INSTANTIATE(View) template void find_depths(const View&, std::span<VectorRange>, int);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
