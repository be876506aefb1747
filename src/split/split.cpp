#include "split/split.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "split/panels.hpp"
#include "split/residues/complex_residues.hpp"
#include "split/residues/residues.hpp"
#include "split/tiles.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Returns the number of vectors that the split writes, including padding.
std::int64_t written_vectors(const Slices& slices) {
  const bool has_panels = slices.storage == SliceStorage::panels;
  return has_panels ? round_up(slices.vectors, Slices::panel_vectors) : slices.padded_vectors();
}

void clear_padding(const Slices& slices, std::int64_t first, std::int64_t last) {
  const std::size_t bytes = slices.element_bytes();
  for (int s = 0; s < slices.count; ++s) {
    for (std::int64_t v = first; v < last; ++v) {
      const std::int64_t filled = v < slices.vectors ? slices.k : 0;
      std::byte* vector =
          slices.data +
          static_cast<std::size_t>(s * slices.slice_stride() + v * slices.vector_stride()) * bytes;
      std::memset(vector + static_cast<std::size_t>(filled) * bytes, 0,
                  static_cast<std::size_t>(slices.vector_stride() - filled) * bytes);
    }
  }
}

// Clears the panel's vectors beyond the operand's last vector. The panel has vectors first ... last - 1.
void clear_rest_of_panel(const Slices& slices, std::int64_t first, std::int64_t last) {
  for (int s = 0; s < slices.count; ++s) {
    for (std::int64_t v = std::max(first, slices.vectors); v < last; ++v) {
      float* vector = slices.vector<float>(s, v);
      for (std::int64_t p = 0; p < slices.k; ++p) vector[p * Slices::panel_vectors] = 0;
    }
  }
}

// Returns the stored form of an element: in packed slices the bit pattern, in panels of floats the value.
template <class Element>
Element stored(const Format& format, std::uint64_t pattern) {
  if constexpr (std::is_same_v<Element, float>) {
    return static_cast<float>(decode(format, pattern));
  } else {
    return static_cast<Element>(pattern);
  }
}

template <class Element, class View>
void split_block_into(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                      const Slices& slices, std::span<const double> inner_factors, std::int64_t first,
                      std::int64_t last) {
  const std::int64_t stride = slices.element_stride();
  for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t p, auto x) {
    const double finite = rule.kind == SplitKind::magnitude_above ? finite_above(x) : finite_or_zero(x);
    const double element = inner_factors.empty() ? finite : finite * inner_factors[p];
    split_element(rule, element, ranges[v].scale, [&](int s, std::uint64_t pattern) {
      slices.vector<Element>(s, v)[p * stride] = stored<Element>(*rule.format, pattern);
    });
  });
}

// Fast form of split_into_digits() for a single word. Since |x 2^scale| < 2^51, the addition x 2^scale + 1.5
// * 2^52 rounds to an integer, to nearest, ties to even. The word is the difference of the bit patterns of
// the sum and of 1.5 * 2^52. NaN and infinities become 0.
template <class View>
void split_block_into_word(const View& operand, std::span<const VectorRange> ranges, const Slices& slices,
                           std::int64_t first, std::int64_t last) {
  constexpr double rounder = 0x1.8p52;
  for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t p, auto x) {
    const TwoFactors factors = two_factors(ranges[v].scale);
    const double scaled = static_cast<double>(x) * factors.first * factors.second;
    const auto word = std::bit_cast<std::int64_t>(scaled + rounder) - std::bit_cast<std::int64_t>(rounder);
    slices.vector<std::int64_t>(0, v)[p] = x - x == 0 ? word : 0;
  });
}

bool is_one_word(const SplitRule& rule) {
  return rule.kind == SplitKind::grid_digits && rule.format->id == FormatId::int52 && rule.slices == 1;
}

template <class View>
void split_block_into_panel(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                            const Slices& slices, std::span<const double> inner_factors, std::int64_t first,
                            std::int64_t last) {
  static_assert(vectors_per_block == Slices::panel_vectors);
  if constexpr (!std::is_same_v<View, MatrixView<const DoubleDouble>>) {
    if (inner_factors.empty() && can_split_panels(rule, ranges.subspan(first, last - first)))
      return split_panel(operand, rule, ranges, slices, first, last);
  }
  clear_rest_of_panel(slices, first, first + Slices::panel_vectors);
  split_block_into<float>(operand, rule, ranges, slices, inner_factors, first, last);
}

template <class View>
void split_block(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                 const Slices& slices, std::span<const double> inner_factors, std::int64_t first,
                 std::int64_t last) {
  if constexpr (std::is_same_v<View, EmbeddedView<float>> || std::is_same_v<View, EmbeddedView<double>>) {
    if (!rule.complex_basis.empty())
      return split_block_into_complex_residues(operand, rule, ranges, slices, inner_factors, first, last);
  }
  if (rule.kind == SplitKind::residues && slices.storage == SliceStorage::packed)
    return split_block_into_residues(operand, rule, ranges, slices, inner_factors, first, last);
  if constexpr (std::is_same_v<View, EmbeddedView<float>> || std::is_same_v<View, MatrixView<const float>>) {
    if (rule.kind == SplitKind::tiles)
      return split_block_into_tiles(operand, rule, ranges, slices, first, last);
  }
  if (slices.storage == SliceStorage::panels)
    return split_block_into_panel(operand, rule, ranges, slices, inner_factors, first, last);
  if constexpr (!std::is_same_v<View, MatrixView<const DoubleDouble>>) {
    if (is_one_word(rule)) return split_block_into_word(operand, ranges, slices, first, last);
  }
  switch (rule.format->storage_bytes) {
    case 1: return split_block_into<std::uint8_t>(operand, rule, ranges, slices, inner_factors, first, last);
    case 2: return split_block_into<std::uint16_t>(operand, rule, ranges, slices, inner_factors, first, last);
    case 4: return split_block_into<std::uint32_t>(operand, rule, ranges, slices, inner_factors, first, last);
    default:
      return split_block_into<std::uint64_t>(operand, rule, ranges, slices, inner_factors, first, last);
  }
}

}  // namespace

template <class View>
void split_operand(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                   const Slices& slices, int threads, std::span<const double> inner_factors) {
  if (slices.bytes() == 0) return;
  const std::int64_t blocks = written_vectors(slices) / vectors_per_block;
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * vectors_per_block;
    const std::int64_t last = first + vectors_per_block;
    if (slices.storage == SliceStorage::packed) clear_padding(slices, first, last);
    clear_tiles(slices, first, last);
    if (first < slices.vectors)
      split_block(operand, rule, ranges, slices, inner_factors, first, std::min(last, slices.vectors));
  }
}

template void split_operand(const MatrixView<const float>&, const SplitRule&, std::span<const VectorRange>,
                            const Slices&, int, std::span<const double>);
template void split_operand(const MatrixView<const double>&, const SplitRule&, std::span<const VectorRange>,
                            const Slices&, int, std::span<const double>);
template void split_operand(const MatrixView<const DoubleDouble>&, const SplitRule&,
                            std::span<const VectorRange>, const Slices&, int, std::span<const double>);
template void split_operand(const EmbeddedView<float>&, const SplitRule&, std::span<const VectorRange>,
                            const Slices&, int, std::span<const double>);
template void split_operand(const EmbeddedView<double>&, const SplitRule&, std::span<const VectorRange>,
                            const Slices&, int, std::span<const double>);

}  // namespace kintsugi::core
