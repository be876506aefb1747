#include "tools/measure/bound_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/formats.hpp"

namespace kintsugi::measure {
namespace {

bool is_nearest(std::string_view rounding) { return rounding == "nearest-even"; }

// Returns log2 of the remainder after `slices` slices, relative to the element's leading power of two: a
// slice rounded to nearest gains p + 1 bits, a truncated one p, the first of them p - 1.
int relative_rest(const SplitDescription& split, const core::Format& format, int slices) {
  const bool nearest = is_nearest(split.first_rounding) && is_nearest(split.residual_rounding);
  return 1 - slices * (format.significand_bits + (nearest ? 1 : 0));
}

// Returns log2 of the largest remainder of an element due to the last slice's quantum.
int absolute_rest(const SplitDescription& split, const core::Format& format) {
  const std::string_view rounding = split.slices == 1 ? split.first_rounding : split.residual_rounding;
  const int quantum = rounding == "bit-cut" ? format.min_exponent : format.min_quantum();
  return quantum - (is_nearest(rounding) ? 1 : 0) - split.residual_exponent * (split.slices - 1);
}

// Returns the largest exponent of elements of which no slice overflows. Rounding may raise the first
// slice by a binade; each further slice is at most the remainder before it, multiplied by 2^residual_exponent
// once per slice.
int largest_exponent(const SplitDescription& split, const core::Format& format) {
  int largest = format.max_exponent - 1;
  for (int s = 1; s < split.slices; ++s)
    largest = std::min(largest,
                       format.max_exponent - relative_rest(split, format, s) - s * split.residual_exponent);
  return largest;
}

bool is_in_window(double largest, double smallest, const SplitWindow& window) {
  if (window.integer) return true;
  const int top = std::ilogb(largest);
  const int bottom = std::ilogb(smallest);
  if (window.scaled) return top - bottom <= window.dynamic_range;
  return bottom >= window.smallest && top <= window.largest;
}

// Magnitudes of a vector: their sum, the largest, and the smallest that is not 0.
struct Magnitudes {
  bool finite = true;
  double sum = 0;
  double largest = 0;
  double smallest = HUGE_VAL;
};

template <class T>
std::vector<Magnitudes> magnitudes_of(core::MatrixView<const T> rows) {
  std::vector<Magnitudes> all(static_cast<std::size_t>(rows.rows));
  const bool worth_threads = rows.rows * rows.columns > (1 << 18);
#pragma omp parallel for schedule(static) if (worth_threads)
  for (std::int64_t v = 0; v < rows.rows; ++v) {
    Magnitudes found;
    for (std::int64_t l = 0; l < rows.columns; ++l) {
      const double magnitude = std::fabs(static_cast<double>(rows(v, l)));
      found.sum += magnitude;
      found.finite = found.finite && std::isfinite(magnitude);
      if (magnitude == 0) continue;
      found.largest = std::max(found.largest, magnitude);
      found.smallest = std::min(found.smallest, magnitude);
    }
    all[static_cast<std::size_t>(v)] = found;
  }
  return all;
}

}  // namespace

SplitWindow split_window(const SplitDescription& split) {
  const core::Format* format = core::find_format(split.format);
  SplitWindow window;
  if (format == nullptr) return window;
  window.known = true;
  window.integer =
      !format->floating || split.slices == 0 || split.kind == "successive" || split.kind == "direct";
  window.reserves_rounding_bit = !format->floating && split.kind != "residues";
  window.scaled = split.scale_vectors;
  window.top_exponent = split.top_exponent;
  window.tile_vectors = split.tile_vectors;
  if (window.integer) return window;
  const int lowest = absolute_rest(split, *format) - relative_rest(split, *format, split.slices);
  window.smallest = std::max(lowest, format->min_exponent);
  window.dynamic_range = split.top_exponent - window.smallest;
  window.largest = largest_exponent(split, *format);
  return window;
}

int scaled_exponent(double largest, bool reserves_rounding_bit) {
  int exponent = 0;
  const double fraction = std::frexp(largest, &exponent);  // in [0.5, 1)
  return exponent - 1 + (reserves_rounding_bit && fraction >= 127.0 / 128 ? 1 : 0);
}

namespace {

// Gives all vectors of a panel the largest of their unscales; vectors of zeros do not count.
void share_scales(std::vector<long double>& unscales, const std::vector<Magnitudes>& magnitudes,
                  std::size_t panel_vectors) {
  for (std::size_t first = 0; first < unscales.size(); first += panel_vectors) {
    const std::size_t last = std::min(first + panel_vectors, unscales.size());
    long double largest = 0;
    for (std::size_t v = first; v < last; ++v) {
      if (magnitudes[v].largest != 0) largest = std::max(largest, unscales[v]);
    }
    for (std::size_t v = first; v < last; ++v) unscales[v] = largest == 0 ? 1 : largest;
  }
}

}  // namespace

template <class T>
VectorNorms vector_norms(core::MatrixView<const T> rows, const SplitWindow& window) {
  VectorNorms norms;
  norms.in_window = window.known;
  const std::vector<Magnitudes> magnitudes = magnitudes_of(rows);
  for (const auto& [finite, sum, largest, smallest] : magnitudes) {
    norms.overflows = norms.overflows || !finite;
    norms.one_norms.push_back(sum);
    norms.unscales.push_back(1);
    if (largest == 0 || norms.overflows) continue;
    if (window.scaled)
      norms.unscales.back() =
          std::ldexp(1.0L, scaled_exponent(largest, window.reserves_rounding_bit) - window.top_exponent);
    else
      norms.overflows = !window.integer && std::ilogb(largest) > window.largest;
    norms.in_window = norms.in_window && is_in_window(largest, smallest, window);
  }
  if (window.tile_vectors > 0)
    share_scales(norms.unscales, magnitudes, static_cast<std::size_t>(window.tile_vectors));
  norms.in_window = norms.in_window && !norms.overflows;
  return norms;
}

template <class T>
double allowed_error(const BoundCoefficients& bound, const ElementError& element, const VectorNorms& a,
                     const VectorNorms& b) {
  const auto i = static_cast<std::size_t>(element.i);
  const auto j = static_cast<std::size_t>(element.j);
  const auto before_rounding = static_cast<double>(
      bound.relative * element.absolute + bound.floor_a * a.unscales[i] * b.one_norms[j] +
      bound.floor_b * b.unscales[j] * a.one_norms[i] + bound.floor_both * a.unscales[i] * b.unscales[j]);
  const double unit_roundoff = std::ldexp(1.0, -std::numeric_limits<T>::digits);
  return before_rounding + unit_roundoff * (std::fabs(element.exact) + before_rounding) +
         static_cast<double>(std::numeric_limits<T>::denorm_min());
}

template VectorNorms vector_norms(core::MatrixView<const float>, const SplitWindow&);
template VectorNorms vector_norms(core::MatrixView<const double>, const SplitWindow&);
template double allowed_error<float>(const BoundCoefficients&, const ElementError&, const VectorNorms&,
                                     const VectorNorms&);
template double allowed_error<double>(const BoundCoefficients&, const ElementError&, const VectorNorms&,
                                      const VectorNorms&);

}  // namespace kintsugi::measure
