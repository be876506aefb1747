#include "tools/measure/retained_bits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/status.hpp"
#include "formats/formats.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::measure {
namespace {

using core::Status;

core::Rounding rounding_of(std::string_view name) {
  if (name == "nearest-even") return core::Rounding::nearest_even;
  if (name == "towards-zero") return core::Rounding::towards_zero;
  if (name == "bit-cut") return core::Rounding::bit_cut;
  core::fail(Status::invalid_argument,
             "there is no rounding \"{}\"; there are nearest-even, towards-zero, bit-cut", name);
}

const core::Format* format_of(std::string_view name) {
  const core::Format* format = core::find_format(name);
  if (format == nullptr) core::fail(Status::invalid_argument, "there is no format \"{}\"", name);
  return format;
}

// Returns -log2 of the last slice's unit. Successive slices end below the first one's maximum at the latest:
// the remainder of a rounding is half a grid, so each further slice holds one bit more.
int last_exponent(const SplitDescription& split) {
  if (split.kind == "successive") return split.slices * (split.residual_exponent + 1) - 2;
  // Segments of 7 bits, of which the first has the leading one.
  if (split.kind == "tiles") return split.residual_exponent * split.slices - 1;
  return split.residual_exponent * (split.slices - 1);
}

// Returns the largest p with |error| <= 2^-p |x|.
int kept_bits(double error, double x) {
  int error_exponent = 0;
  int exponent = 0;
  const double error_fraction = std::frexp(std::fabs(error), &error_exponent);
  const double fraction = std::frexp(std::fabs(x), &exponent);
  return exponent - error_exponent - (error_fraction > fraction ? 1 : 0);
}

// Returns the largest p with |error| < 2^(1-p) |x|.
int kept_places(double error, double x) {
  int error_exponent = 0;
  int exponent = 0;
  const double error_fraction = std::frexp(std::fabs(error), &error_exponent);
  const double fraction = std::frexp(std::fabs(x), &exponent);
  return exponent - error_exponent + (error_fraction < fraction ? 1 : 0);
}

}  // namespace

RetainedBits::RetainedBits(const SplitDescription& split)
    : format_(format_of(split.format)), fixed_(split.kind != "hi_lo" && split.kind != "direct"),
      reserves_rounding_bit_(split_window(split).reserves_rounding_bit), slices_(split.slices),
      first_rounding_(rounding_of(split.first_rounding)),
      residual_rounding_(rounding_of(split.residual_rounding)), residual_exponent_(split.residual_exponent),
      residual_factor_(std::ldexp(1.0, split.residual_exponent)), last_exponent_(last_exponent(split)),
      scale_vectors_(split.scale_vectors), top_exponent_(split.top_exponent) {
  const std::array<std::string_view, 6> kinds{"hi_lo", "direct", "fixed", "residues", "successive", "tiles"};
  if (std::find(kinds.begin(), kinds.end(), split.kind) == kinds.end())
    core::fail(
        Status::invalid_argument,
        "there is no kind of split \"{}\"; there are hi_lo, direct, fixed, residues, successive, tiles",
        split.kind);
}

// Returns the remainder of x 2^scale after all slices, in units of the last slice. Every remainder is exact
// in double, since rounding leaves no more bits than there were.
double RetainedBits::residual_of(double scaled) const {
  if (fixed_) return std::remainder(std::ldexp(scaled, last_exponent_), 1.0);
  double residual = scaled;
  for (int s = 0; s < slices_; ++s) {
    const double stored = s == 0 ? residual : residual * residual_factor_;
    const core::Rounding rounding = s == 0 ? first_rounding_ : residual_rounding_;
    residual = stored - core::decode(*format_, core::encode(*format_, stored, rounding));
  }
  return residual;
}

int RetainedBits::of(double x, int scale, int max_bits, Count count) const {
  if (slices_ == 0) return max_bits;
  const double scaled = std::ldexp(x, scale);
  // x was rounded below double's normal numbers, so it is below the quantum of every slice.
  if (!std::isnormal(scaled) && std::ldexp(scaled, -scale) != x) return 0;
  const double residual = residual_of(scaled);
  if (residual == 0) return max_bits;
  if (!std::isfinite(residual)) return 0;
  return std::clamp(count(residual, scaled) + last_exponent_, 0, max_bits);
}

int RetainedBits::of(float x, int scale) const {
  return of(static_cast<double>(x), scale, std::numeric_limits<float>::digits, kept_bits);
}

int RetainedBits::places_of(float x) const {
  return of(static_cast<double>(x), 0, std::numeric_limits<float>::digits, kept_places);
}

int RetainedBits::of(double x, int scale) const {
  return of(x, scale, std::numeric_limits<double>::digits, kept_bits);
}

template <class T>
int RetainedBits::scale_of(core::MatrixView<const T> vectors, std::int64_t v) const {
  if (!scale_vectors_) return 0;
  double largest = 0;
  for (std::int64_t l = 0; l < vectors.columns; ++l) {
    const double magnitude = std::fabs(static_cast<double>(vectors(v, l)));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest == 0 ? 0 : top_exponent_ - scaled_exponent(largest, reserves_rounding_bit_);
}

int RetainedBits::promised(int max_bits) const {
  if (slices_ == 0) return max_bits;
  const int p = format_->significand_bits;
  const bool nearest =
      first_rounding_ == core::Rounding::nearest_even && residual_rounding_ == core::Rounding::nearest_even;
  // A grid ends at 2^-last_exponent, half of which remains after rounding to nearest; the largest elements
  // have the exponent top, or top - 1 with reserves_rounding_bit_.
  if (fixed_ || !format_->floating)
    return std::min(max_bits,
                    top_exponent_ - (reserves_rounding_bit_ ? 1 : 0) + last_exponent_ + (nearest ? 1 : 0));
  // A slice rounded to nearest gains p + 1 bits including the sign, except the first; a truncated one gains
  // p, the first p - 1.
  return std::min(max_bits, slices_ * (p + (nearest ? 1 : 0)) - 1);
}

template <class T>
RetainedCounts count_retained_bits(const SplitDescription& split, core::MatrixView<const T> vectors) {
  constexpr int significand = std::numeric_limits<T>::digits;
  const RetainedBits bits(split);
  const int promise = bits.promised(significand);
  std::int64_t elements = 0;
  std::int64_t promised = 0;
  int fewest = significand;
#pragma omp parallel for schedule(static) reduction(+ : elements, promised) reduction(min : fewest)
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    const int scale = bits.scale_of(vectors, v);
    for (std::int64_t l = 0; l < vectors.columns; ++l) {
      const T x = vectors(v, l);
      if (x == T(0) || !std::isfinite(x)) continue;
      const int kept = bits.of(x, scale);
      elements += 1;
      promised += kept >= promise ? 1 : 0;
      fewest = std::min(fewest, kept);
    }
  }
  return {elements, promised, promise, fewest};
}

template int RetainedBits::scale_of(core::MatrixView<const float>, std::int64_t) const;
template int RetainedBits::scale_of(core::MatrixView<const double>, std::int64_t) const;
template RetainedCounts count_retained_bits(const SplitDescription&, core::MatrixView<const float>);
template RetainedCounts count_retained_bits(const SplitDescription&, core::MatrixView<const double>);

}  // namespace kintsugi::measure
