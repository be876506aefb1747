// Whether the errors of a result keep their scheme's a-priori bound, element by element. Written from the
// bound's statement alone (docs/schema/plan.schema.json), so that it does not share a mistake with src/plan.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/view.hpp"
#include "lab/metrics.hpp"

namespace kintsugi::lab {

// A split as a plan's description has it: x 2^scale = sum of slice_s 2^(-s residual_exponent) + error.
struct SplitDescription {
  std::string_view format;
  int slices = 1;
  std::string_view first_rounding;  // "nearest-even", "towards-zero", "bit-cut"
  std::string_view residual_rounding;
  int residual_exponent = 0;
  bool scale_vectors = false;
  int top_exponent = 0;
  // Or "fixed": rounded once, to nearest, to the grid of the last slice; "residues": to integers;
  // "successive": integers of residual_exponent bits, each slice on a grid of its vector's own. 0 slices:
  // nothing is split, the whole element counts.
  std::string_view kind = "hi_lo";
};

// Vectors along k on which a split's bound is promised. In floating-point formats: where every element keeps
// all significant bits of the split. In integer ones, digits of a grid a vector: all finite ones.
struct SplitWindow {
  bool known = false;       // false: no format of that name
  bool integer = false;     // integer slices and whole elements: every finite operand is inside
  bool makes_room = false;  // maxima are scaled a binade lower where their seven leading bits are all ones
  bool scaled = false;      // the largest magnitude is brought into [2^top_exponent, 2^(top_exponent + 1))
  int top_exponent = 0;     // scaled
  int dynamic_range = 0;    // scaled, not integer: binades of a vector
  int smallest = 0;         // else: exponents of all elements
  int largest = 0;
};
SplitWindow split_window(const SplitDescription& split);

// The exponent that a vector's scale brings to top_exponent, of its largest magnitude. Where room is made, it
// is one more if the seven leading bits are all ones: rounded to a digit of 8 bits they would be the 128 that
// int8 has not.
int scaled_exponent(double largest, bool makes_room);

// What the bound needs of an operand's vectors, the rows of `rows`.
struct VectorNorms {
  std::vector<double> ones;  // 1-norms
  // 2^-scale, 1 where the split does not scale; long double holds those of subnormal doubles too.
  std::vector<long double> unscales;
  bool in_window = true;   // all of them
  bool overflows = false;  // one is not finite, or an unscaled slice of it may not be: nothing is promised
};
template <class T>
VectorNorms vector_norms(core::MatrixView<const T> rows, const SplitWindow& window);

// |C - AB| <= relative |A||B| + floor_a u_i ||b_j||_1 + floor_b v_j ||a_i||_1 + floor_both u_i v_j.
struct BoundCoefficients {
  double relative = 0;
  double floor_a = 0;
  double floor_b = 0;
  double floor_both = 0;
};

// The bound of an element of C = AB, the last rounding to C's type T included.
template <class T>
double allowed_error(const BoundCoefficients& bound, const ElementError& element, const VectorNorms& a,
                     const VectorNorms& b);

extern template VectorNorms vector_norms(core::MatrixView<const float>, const SplitWindow&);
extern template VectorNorms vector_norms(core::MatrixView<const double>, const SplitWindow&);
extern template double allowed_error<float>(const BoundCoefficients&, const ElementError&, const VectorNorms&,
                                            const VectorNorms&);
extern template double allowed_error<double>(const BoundCoefficients&, const ElementError&,
                                             const VectorNorms&, const VectorNorms&);

}  // namespace kintsugi::lab
