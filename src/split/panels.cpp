// A number is rounded to a multiple of its quantum q by an addition in double: the sum of a magnitude below
// 2^51 q and 1.5 * 2^52 q lies in the binade of quantum q, so that the addition rounds to nearest, ties to
// even, as encode() does, and subtracting 1.5 * 2^52 q is exact. Everything else is exact, so these are the
// values of decode(encode()).
#include "split/panels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/vectorised.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t width = Slices::panel_vectors;

// Inner indices split at once: 12 KiB of memory.
constexpr std::int64_t chunk = 64;

// Constants of a slice's rounding.
struct SliceRounding {
  double smallest_normal;  // numbers below have its quantum
  double last_place;       // quantum of a number in [1, 2)
  double truncation;       // 1: towards zero; 0: to nearest
  double least;            // smaller magnitudes become zero
  double next;             // factor of the residual
};

SliceRounding rounding_of(const SplitRule& rule, int slice) {
  const Format& format = *rule.format;
  const Rounding rounding = slice == 0 ? rule.first_rounding : rule.residual_rounding;
  const double smallest = power_of_two(format.min_exponent);
  return {smallest, power_of_two(-format.fraction_bits()), rounding == Rounding::nearest_even ? 0.0 : 1.0,
          rounding == Rounding::bit_cut ? smallest : 0.0, power_of_two(rule.residual_exponent)};
}

// Sets slice[e] = rounded rests[e], and rests[e] to the next residual.
KINTSUGI_VECTORIZED void take_slice(const SliceRounding& rounding, std::int64_t count, double* rests,
                                    float* slice) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  constexpr std::uint64_t exponent = 0x7ffULL << 52;
  for (std::int64_t e = 0; e < count; ++e) {
    const auto bits = std::bit_cast<std::uint64_t>(rests[e]);
    const auto magnitude = std::bit_cast<double>(bits & ~sign);
    const auto power = std::bit_cast<double>(bits & exponent);
    const double quantum = std::max(power, rounding.smallest_normal) * rounding.last_place;
    const double unit = quantum * 0x1.8p52;
    double rounded = (magnitude + unit) - unit;
    rounded -= rounded > magnitude ? quantum * rounding.truncation : 0.0;
    rounded = magnitude < rounding.least ? 0.0 : rounded;
    const auto value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(rounded) | (bits & sign));
    slice[e] = static_cast<float>(value);
    rests[e] = (rests[e] - value) * rounding.next;
  }
}

// Sets the residuals before the first slice: scaled elements, with 0 in place of NaN and infinities.
template <class T>
inline void scale(const T* elements, const double* factors, std::int64_t length, double* rests) {
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t v = 0; v < width; ++v) {
      const T x = elements[p * width + v];
      rests[p * width + v] = x - x == T(0) ? static_cast<double>(x) * factors[v] : 0.0;
    }
  }
}
KINTSUGI_VECTORIZED void scale_elements(const float* elements, const double* factors, std::int64_t length,
                                        double* rests) {
  scale(elements, factors, length, rests);
}
KINTSUGI_VECTORIZED void scale_elements(const double* elements, const double* factors, std::int64_t length,
                                        double* rests) {
  scale(elements, factors, length, rests);
}

// Interleaves `length` elements from inner index `begin` on of vectors first ... last - 1.
template <class T>
void interleave(const MatrixView<const T>& operand, std::int64_t first, std::int64_t last, std::int64_t begin,
                std::int64_t length, T* elements) {
  const MatrixView<const T> part = operand.block(first, begin, last - first, length);
  if (part.column_stride != 1) {
    for (std::int64_t p = 0; p < length; ++p) {
      for (std::int64_t v = 0; v < part.rows; ++v) elements[p * width + v] = part(v, p);
    }
    return;
  }
  for (std::int64_t v = 0; v < part.rows; ++v) {
    const T* vector = &part(v, 0);
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

// True if no slice of |x| < 2^bound, x a scaled element, can exceed the format's numbers.
bool fits(const SplitRule& rule, int bound) {
  const Format& format = *rule.format;
  for (int s = 0; s < rule.slices; ++s) {
    if (bound > format.max_exponent) return false;
    // The residual is at most a quantum, or half of one; or what a bit-cut leaves out.
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    const int nearest = rounding == Rounding::nearest_even ? 1 : 0;
    const int least = rounding == Rounding::bit_cut ? format.min_exponent : format.min_quantum();
    bound = std::max(bound - format.significand_bits, least) - nearest + rule.residual_exponent;
  }
  return true;
}

}  // namespace

bool can_split_panels(const SplitRule& rule, std::span<const VectorRange> ranges) {
  constexpr int largest_scale = 1000;  // whose power of two and inverse are normal
  if (rule.kind != SplitKind::rounded_residuals || !rule.format->floating) return false;
  return std::all_of(ranges.begin(), ranges.end(), [&](const VectorRange& range) {
    if ((range.flags & VectorRange::all_zero) != 0) return true;
    return std::abs(range.scale) < largest_scale && fits(rule, range.largest + range.scale + 1);
  });
}

template <class View>
void split_panel(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                 const Slices& slices, std::int64_t first, std::int64_t last) {
  using T = std::remove_cvref_t<decltype(operand(0, 0))>;
  alignas(64) std::array<T, chunk * width> elements{};
  alignas(64) std::array<double, chunk * width> rests;
  std::array<double, width> factors{};
  for (std::int64_t v = first; v < last; ++v)
    factors[static_cast<std::size_t>(v - first)] = power_of_two(ranges[v].scale);
  for (std::int64_t begin = 0; begin < operand.columns; begin += chunk) {
    const std::int64_t length = std::min(chunk, operand.columns - begin);
    interleave(operand, first, last, begin, length, elements.data());
    scale_elements(elements.data(), factors.data(), length, rests.data());
    for (int s = 0; s < rule.slices; ++s)
      take_slice(rounding_of(rule, s), length * width, rests.data(),
                 slices.vector<float>(s, first) + begin * width);
  }
}

template void split_panel(const MatrixView<const float>&, const SplitRule&, std::span<const VectorRange>,
                          const Slices&, std::int64_t, std::int64_t);
template void split_panel(const MatrixView<const double>&, const SplitRule&, std::span<const VectorRange>,
                          const Slices&, std::int64_t, std::int64_t);
template void split_panel(const EmbeddedView<float>&, const SplitRule&, std::span<const VectorRange>,
                          const Slices&, std::int64_t, std::int64_t);
template void split_panel(const EmbeddedView<double>&, const SplitRule&, std::span<const VectorRange>,
                          const Slices&, std::int64_t, std::int64_t);

}  // namespace kintsugi::core
