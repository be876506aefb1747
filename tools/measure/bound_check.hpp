// Check of a result's errors against its scheme's a-priori bound, element by element. Written from the
// bound's statement alone (docs/schema/plan.schema.json), so that it shares no mistake with src/schemes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/view.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::measure {

// A split as in a plan's description: x 2^scale = sum of slice_s 2^(-s residual_exponent) + error.
struct SplitDescription {
  std::string_view format;
  int slices = 1;
  std::string_view first_rounding;  // "nearest-even", "towards-zero", "bit-cut"
  std::string_view residual_rounding;
  int residual_exponent = 0;
  bool scale_vectors = false;
  int top_exponent = 0;
  // Kind of split. "fixed": rounded once, to nearest, to the grid of the last slice; "residues": to integers;
  // "successive": integers of residual_exponent bits, where each slice of each vector has its own grid.
  // 0 slices: the elements are not split.
  std::string_view kind = "hi_lo";
  // "direct": "hi_lo" of which products lose nothing, so that every finite operand is inside its window.
  // "tiles": segments with one exponent per tile of so many vectors and inner indices. Vectors that share
  // tiles have one scale.
  int tile_vectors = 0;
  int tile_depth = 0;
};

// Vectors along k for which a split's bound holds. In floating-point formats: vectors of which every element
// keeps all significant bits of the split. In integer formats, digits of a grid per vector: all finite
// vectors.
struct SplitWindow {
  bool known = false;    // false: there is no format of that name
  bool integer = false;  // slices are integers, or elements are not split: every finite operand is inside
  bool reserves_rounding_bit =
      false;              // maxima are scaled a binade lower if their seven leading bits are all ones
  bool scaled = false;    // the largest magnitude is scaled into [2^top_exponent, 2^(top_exponent + 1))
  int top_exponent = 0;   // if scaled
  int dynamic_range = 0;  // if scaled and not integer: largest dynamic range of a vector, in binades
  int smallest = 0;       // otherwise: smallest and largest exponent of elements
  int largest = 0;
  int tile_vectors = 0;  // if not 0: number of consecutive vectors that share a scale
};
SplitWindow split_window(const SplitDescription& split);

// Returns the exponent of a vector's largest magnitude that its scale moves to top_exponent. With
// `reserves_rounding_bit` it is one more if the seven leading bits are all ones: rounded to a digit of 8 bits
// they would be 128, which int8 lacks.
int scaled_exponent(double largest, bool reserves_rounding_bit);

// Properties of an operand's vectors, the rows of `rows`, that the bound needs.
struct VectorNorms {
  std::vector<double> one_norms;  // 1-norm of each vector
  // 2^-scale of each vector, 1 if the split does not scale; long double also holds those of subnormal
  // doubles.
  std::vector<long double> unscales;
  bool in_window = true;   // true: all vectors
  bool overflows = false;  // a vector is not finite, or an unscaled slice of it may not be: no bound holds
};

template <class T>
VectorNorms vector_norms(core::MatrixView<const T> rows, const SplitWindow& window);

// Coefficients of the bound
//   |C - AB| <= relative |A||B| + floor_a u_i ||b_j||_1 + floor_b v_j ||a_i||_1 + floor_both u_i v_j.
struct BoundCoefficients {
  double relative = 0;
  double floor_a = 0;
  double floor_b = 0;
  double floor_both = 0;
};

// Returns the bound for an element of C = AB, including the last rounding to C's type T.
template <class T>
double allowed_error(const BoundCoefficients& bound, const ElementError& element, const VectorNorms& a,
                     const VectorNorms& b);

}  // namespace kintsugi::measure
