#include "lab/bound_check.hpp"

#include <algorithm>
#include <cmath>

#include "formats/formats.hpp"

namespace kintsugi::lab {
namespace {

bool is_nearest(std::string_view rounding) { return rounding == "nearest-even"; }

// log2 of the rest after all slices, relative to the element's leading power of two: a slice to nearest gains
// p + 1 bits, a truncated one p, the first of them p - 1.
int relative_rest(const SplitDescription& split, int significand_bits) {
  const bool nearest = is_nearest(split.first_rounding) && is_nearest(split.residual_rounding);
  return 1 - split.slices * (significand_bits + (nearest ? 1 : 0));
}

// log2 of what the last slice's quantum leaves of an element.
int absolute_rest(const SplitDescription& split, const core::Format& format) {
  const std::string_view rounding = split.slices == 1 ? split.first_rounding : split.residual_rounding;
  const int quantum = rounding == "bit-cut" ? format.min_exponent : format.min_quantum();
  return quantum - (is_nearest(rounding) ? 1 : 0) - split.residual_exponent * (split.slices - 1);
}

}  // namespace

SplitWindow split_window(const SplitDescription& split) {
  const core::Format* format = core::find_format(split.format);
  SplitWindow window;
  if (format == nullptr || !format->floating) return window;
  const int lowest = absolute_rest(split, *format) - relative_rest(split, format->significand_bits);
  window.known = true;
  window.scaled = split.scale_vectors;
  window.top_exponent = split.top_exponent;
  window.smallest = std::max(lowest, format->min_exponent);
  window.largest_span = split.top_exponent - window.smallest;
  window.largest = format->max_exponent - 1;  // above, rounding may overflow a slice
  return window;
}

VectorNorms vector_norms(core::MatrixView<const float> rows, const SplitWindow& window) {
  VectorNorms norms;
  norms.in_window = window.known;
  for (std::int64_t v = 0; v < rows.rows; ++v) {
    double one = 0;
    double largest = 0;
    double smallest = HUGE_VAL;
    for (std::int64_t l = 0; l < rows.columns; ++l) {
      const double magnitude = std::fabs(static_cast<double>(rows(v, l)));
      one += magnitude;
      norms.in_window = norms.in_window && std::isfinite(magnitude);
      if (magnitude == 0) continue;
      largest = std::max(largest, magnitude);
      smallest = std::min(smallest, magnitude);
    }
    norms.ones.push_back(one);
    norms.unscales.push_back(1);
    if (largest == 0 || !norms.in_window) continue;
    const int top = std::ilogb(largest);
    const int bottom = std::ilogb(smallest);
    if (window.scaled) norms.unscales.back() = std::ldexp(1.0, top - window.top_exponent);
    norms.in_window = window.scaled ? top - bottom <= window.largest_span
                                    : bottom >= window.smallest && top <= window.largest;
  }
  return norms;
}

double allowed_error(const BoundCoefficients& bound, const EntryError& entry, const VectorNorms& a,
                     const VectorNorms& b) {
  const auto i = static_cast<std::size_t>(entry.i);
  const auto j = static_cast<std::size_t>(entry.j);
  const double before_rounding = bound.relative * entry.absolute + bound.floor_a * a.unscales[i] * b.ones[j] +
                                 bound.floor_b * b.unscales[j] * a.ones[i] +
                                 bound.floor_both * a.unscales[i] * b.unscales[j];
  return before_rounding + 0x1p-24 * (std::fabs(entry.exact) + before_rounding) + 0x1p-150;
}

}  // namespace kintsugi::lab
