// Significant bits of an operand's elements that a split keeps.
//
// A split keeps p bits of x if |x - s| <= 2^-p |x|, with s the sum of its slices and the scales undone: as
// close as x rounded to p bits, to nearest. The retained bits are the largest such p: the type's significand
// (24 or 53), the maximum, if the slices hold x exactly; 0 if x is lost or overflows a slice.
#pragma once

#include <cstdint>

#include "base/view.hpp"
#include "formats/format.hpp"
#include "tools/measure/bound_check.hpp"

namespace kintsugi::measure {

// Written from the split's equation (SplitDescription) alone, so that it shares no mistake with src/.
class RetainedBits {
 public:
  // Throws core::Error (invalid_argument) for an unknown kind, format or rounding.
  explicit RetainedBits(const SplitDescription& split);

  // Returns the retained bits of a finite x that is not zero and whose vector is multiplied by 2^scale.
  int of(float x, int scale = 0) const;
  int of(double x, int scale = 0) const;
  // Returns the retained places of x: the largest p with |x - s| < 2^(1-p) |x|, as close as x cut to p
  // places.
  int places_of(float x) const;

  // Returns the scale of a vector, row `v` of `vectors`: it moves the largest magnitude into [2^top_exponent,
  // 2^(top_exponent + 1)), and for an integer format prevents rounding up to a digit that the format lacks. 0
  // if the split does not scale or no element is finite and not zero.
  template <class T>
  int scale_of(core::MatrixView<const T> vectors, std::int64_t v) const;

  // Returns the bits that the split keeps of every element inside its window, at most `max_bits`; for an
  // integer format: of the largest element of every vector.
  int promised(int max_bits) const;

 private:
  // Returns significant bits or places that remain, from the error and x.
  using Count = int (*)(double error, double x);
  int of(double x, int scale, int max_bits, Count count) const;
  double residual_of(double scaled) const;

  const core::Format* format_;
  bool fixed_;                  // rounded once, to the grid of the last slice
  bool reserves_rounding_bit_;  // as in SplitWindow
  int slices_;
  core::Rounding first_rounding_;
  core::Rounding residual_rounding_;
  int residual_exponent_;
  double residual_factor_;
  int last_exponent_;  // -log2 of the last slice's unit
  bool scale_vectors_;
  int top_exponent_;
};

// Counts over the finite elements of an operand that are not zero.
struct RetainedCounts {
  std::int64_t elements = 0;
  std::int64_t promised = 0;  // elements that keep as many bits as the split promises
  int promised_bits = 0;
  int fewest = 0;  // over all elements; the type's significand if there are none
};

// Counts over the rows of `vectors`: rows of op(A), columns of op(B).
template <class T>
RetainedCounts count_retained_bits(const SplitDescription& split, core::MatrixView<const T> vectors);

}  // namespace kintsugi::measure
