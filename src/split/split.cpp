#include "split/split.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "split/maxima.hpp"
#include "split/slices.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Vectorised split into floating-point slices that are stored in panels (SliceStorage::panels). It rounds a
// number to a multiple of its quantum q by an addition. In double, the sum of a magnitude
// below 2^51 q and 1.5 * 2^52 q has the last bit q. So the addition rounds to nearest, ties to even, as
// encode() does. The subtraction of 1.5 * 2^52 q is exact. In fp32 the same holds with 2^22 and 2^23. All
// other operations are exact, so the slices have the values of decode(encode()).

constexpr std::int64_t width = Slices::panel_vectors;

// Inner indices that are split together. Their elements and residuals take at most 16 KiB.
constexpr std::int64_t chunk = 64;

// Constants for the rounding of a slice.
template <class Real>
struct SliceRounding {
  Real smallest_normal;  // smaller numbers have the quantum of smallest_normal
  Real last_place;       // quantum of a number in [1, 2)
  Real truncation;       // 1: rounds towards zero; 0: to nearest
  Real smallest_kept;    // smaller magnitudes become zero
  Real residual_factor;  // factor by which the residual is multiplied before the next slice
};

template <class Real>
SliceRounding<Real> rounding_of(const SplitRule& rule, int slice) {
  const Format& format = *rule.format;
  const Rounding rounding = slice == 0 ? rule.first_rounding : rule.residual_rounding;
  const auto smallest = static_cast<Real>(power_of_two(format.min_exponent));
  return {.smallest_normal = smallest,
          .last_place = static_cast<Real>(power_of_two(-format.fraction_bits())),
          .truncation = rounding == Rounding::nearest_even ? Real(0) : Real(1),
          .smallest_kept = rounding == Rounding::bit_cut ? smallest : Real(0),
          .residual_factor = static_cast<Real>(power_of_two(rule.residual_exponent))};
}

// Bit patterns of a Real. integer_rounder rounds a number to an integer when it is added and subtracted.
template <class Real>
struct Patterns {
  using Bits = std::conditional_t<std::is_same_v<Real, float>, std::uint32_t, std::uint64_t>;
  static constexpr int fraction_bits = std::numeric_limits<Real>::digits - 1;
  static constexpr Bits sign = Bits{1} << (8 * sizeof(Real) - 1);
  static constexpr Bits exponent = (sign - 1) >> fraction_bits << fraction_bits;
  // 1.5 * 2^fraction_bits
  static constexpr Real integer_rounder = Real(3) * static_cast<Real>(Bits{1} << (fraction_bits - 1));
};

// Sets slice[e] to the rounded residuals[e], then residuals[e] to the residual for the next slice.
template <class Real>
inline void round_residuals(const SliceRounding<Real>& rounding, std::int64_t count, Real* residuals,
                            float* slice) {
  using Bits = typename Patterns<Real>::Bits;
  constexpr Bits sign = Patterns<Real>::sign;
  for (std::int64_t e = 0; e < count; ++e) {
    const auto bits = std::bit_cast<Bits>(residuals[e]);
    const auto magnitude = std::bit_cast<Real>(bits & ~sign);
    const auto power = std::bit_cast<Real>(bits & Patterns<Real>::exponent);
    const Real quantum = std::max(power, rounding.smallest_normal) * rounding.last_place;
    const Real rounder = quantum * Patterns<Real>::integer_rounder;
    Real rounded = (magnitude + rounder) - rounder;
    // With rounding to nearest, truncation is 0 and `lower` equals `rounded`.
    const Real lower = rounded - quantum * rounding.truncation;
    rounded = rounded > magnitude ? lower : rounded;
    rounded = magnitude < rounding.smallest_kept ? Real(0) : rounded;
    const auto value = std::bit_cast<Real>(std::bit_cast<Bits>(rounded) | (bits & sign));
    slice[e] = static_cast<float>(value);
    residuals[e] = (residuals[e] - value) * rounding.residual_factor;
  }
}
KINTSUGI_VECTORIZED void take_slice(const SliceRounding<float>& rounding, std::int64_t count,
                                    float* residuals, float* slice) {
  round_residuals(rounding, count, residuals, slice);
}
KINTSUGI_VECTORIZED void take_slice(const SliceRounding<double>& rounding, std::int64_t count,
                                    double* residuals, float* slice) {
  round_residuals(rounding, count, residuals, slice);
}

// Sets the residuals before the first slice to the scaled elements. NaN and infinities become 0.
template <class T, class Real>
inline void scale(const T* elements, const Real* factors, std::int64_t length, Real* residuals) {
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t v = 0; v < width; ++v) {
      const T x = elements[p * width + v];
      const Real scaled = static_cast<Real>(x) * factors[v];
      residuals[p * width + v] = x - x == T(0) ? scaled : Real(0);
    }
  }
}
KINTSUGI_VECTORIZED void scale_elements(const float* elements, const float* factors, std::int64_t length,
                                        float* residuals) {
  scale(elements, factors, length, residuals);
}
KINTSUGI_VECTORIZED void scale_elements(const float* elements, const double* factors, std::int64_t length,
                                        double* residuals) {
  scale(elements, factors, length, residuals);
}
KINTSUGI_VECTORIZED void scale_elements(const double* elements, const double* factors, std::int64_t length,
                                        double* residuals) {
  scale(elements, factors, length, residuals);
}

// Interleaves vectors first ... last - 1: `length` elements of each, from inner index `begin` on.
template <class T>
void interleave(const MatrixView<const T>& operand, std::int64_t first, std::int64_t last, std::int64_t begin,
                std::int64_t length, T* elements) {
  const MatrixView<const T> block = operand.block(first, begin, last - first, length);
  if (block.column_stride != 1) {
    for (std::int64_t p = 0; p < length; ++p) {
      for (std::int64_t v = 0; v < block.rows; ++v) elements[p * width + v] = block(v, p);
    }
    return;
  }
  for (std::int64_t v = 0; v < block.rows; ++v) {
    const T* vector = &block(v, 0);
    for (std::int64_t p = 0; p < length; ++p) elements[p * width + v] = vector[p];
  }
}

template <class T, class Element>
void interleave(const EmbeddedView<T, Element>& operand, std::int64_t first, std::int64_t last,
                std::int64_t begin, std::int64_t length, T* elements) {
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t v = first; v < last; ++v) elements[p * width + v - first] = operand(v, begin + p);
  }
}

// True if no slice of a scaled element |x| < 2^bound can exceed the format's largest number. In iteration s
// of the loop, 2^bound bounds the residual that is rounded to slice s.
bool slices_are_in_range(const SplitRule& rule, int bound) {
  const Format& format = *rule.format;
  for (int s = 0; s < rule.slices; ++s) {
    if (bound > format.max_exponent) return false;
    // Rounding to nearest leaves at most half a quantum, and truncation less than one quantum. A bit-cut also
    // leaves magnitudes below the smallest normal number unchanged.
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    const int halvings = rounding == Rounding::nearest_even ? 1 : 0;
    const int smallest = rounding == Rounding::bit_cut ? format.min_exponent : format.min_quantum();
    bound = std::max(bound - format.significand_bits, smallest) - halvings + rule.residual_exponent;
  }
  return true;
}

// True if split_panel_in<float>() is exact, because scaled elements, residuals and the numbers that round
// them (1.5 * 2^23 quanta) are normal fp32 numbers.
bool can_split_in_fp32(const SplitRule& rule, std::span<const VectorRange> ranges) {
  constexpr int fraction_bits = Patterns<float>::fraction_bits;
  constexpr int largest = std::numeric_limits<float>::max_exponent - 1;
  constexpr int smallest = std::numeric_limits<float>::min_exponent - 1;
  // A residual is at most 2^-reduction times the number before it. It is then multiplied by at most
  // 2^reduction, so no later slice exceeds the first one.
  const bool nearest =
      rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even;
  const int reduction = rule.format->significand_bits - (nearest ? 0 : 1);
  if (rule.residual_exponent > reduction && rule.format->max_exponent > largest / 2) return false;
  return std::all_of(ranges.begin(), ranges.end(), [&](const VectorRange& range) {
    if ((range.flags & VectorRange::all_zero) != 0) return true;
    return smallest <= range.scale && range.scale <= largest && range.smallest + range.scale >= smallest &&
           range.largest + range.scale - rule.format->fraction_bits() + fraction_bits < largest;
  });
}

// Does the work of split_panel() in the arithmetic of Real.
template <class Real, class View>
void split_panel_in(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                    const Slices& slices, std::int64_t first, std::int64_t last) {
  using T = std::remove_cvref_t<decltype(operand(0, 0))>;
  alignas(64) std::array<T, chunk * width> elements{};
  alignas(64) std::array<Real, chunk * width> residuals;
  std::array<Real, width> factors{};
  for (std::int64_t v = first; v < last; ++v)
    factors[static_cast<std::size_t>(v - first)] = static_cast<Real>(power_of_two(ranges[v].scale));
  for (std::int64_t begin = 0; begin < operand.columns; begin += chunk) {
    const std::int64_t length = std::min(chunk, operand.columns - begin);
    interleave(operand, first, last, begin, length, elements.data());
    scale_elements(elements.data(), factors.data(), length, residuals.data());
    for (int s = 0; s < rule.slices; ++s)
      take_slice(rounding_of<Real>(rule, s), length * width, residuals.data(),
                 slices.vector<float>(s, first) + begin * width);
  }
}

// True if split_panel() gives the slices of split_element() for vectors of these ranges. This requires that
// the rule rounds residuals to a floating format, and that no slice can exceed the format's largest number.
bool can_split_panels(const SplitRule& rule, std::span<const VectorRange> ranges) {
  constexpr int largest_scale = 1000;  // 2^1000 and 2^-1000 are normal doubles
  if (rule.kind != SplitKind::rounded_residuals || !rule.format->floating) return false;
  return std::all_of(ranges.begin(), ranges.end(), [&](const VectorRange& range) {
    if ((range.flags & VectorRange::all_zero) != 0) return true;
    return std::abs(range.scale) < largest_scale &&
           slices_are_in_range(rule, range.largest + range.scale + 1);
  });
}

// Writes the panel that begins with vector `first`: slices of vectors first ... last - 1 of `operand`. The
// panel's other vectors become zero.
template <class View>
void split_panel(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                 const Slices& slices, std::int64_t first, std::int64_t last) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand(0, 0))>, float>) {
    if (can_split_in_fp32(rule, ranges.subspan(first, last - first)))
      return split_panel_in<float>(operand, rule, ranges, slices, first, last);
  }
  split_panel_in<double>(operand, rule, ranges, slices, first, last);
}

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
    if (scales_by_maxima(rule)) return split_block_by_maxima(operand, rule, ranges, slices, first, last);
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
  for_each_vector_block(written_vectors(slices), threads, [&](std::int64_t first, std::int64_t last) {
    if (slices.storage == SliceStorage::packed) clear_padding(slices, first, last);
    clear_tiles(slices, first, last);
    if (first < slices.vectors)
      split_block(operand, rule, ranges, slices, inner_factors, first, std::min(last, slices.vectors));
  });
}

#define INSTANTIATE(View)                                                                                 \
  template void split_operand(const View&, const SplitRule&, std::span<const VectorRange>, const Slices&, \
                              int, std::span<const double>);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
