// A-priori error bound of a program, derived from its split rules and its schedule.
#pragma once

#include <cstdint>

#include "schedule/accumulator.hpp"
#include "schemes/program.hpp"
#include "split/maxima.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {

// For alpha = 1, beta = 0, finite operands and no overflow, element by element:
//
//   |C - AB| <= relative * (|A||B|)_ij
//             + floor_a * u_i * ||b_j||_1  +  floor_b * v_j * ||a_i||_1
//             + floor_both * u_i * v_j
//
// u_i, v_j: the factors that undo the scales, 2^-scale of row i of op(A) and of column j of op(B); 1 if the
// rule does not scale. The last rounding to the result's type is not included. It loses half a unit in the
// last place of C, or half the smallest subnormal number.
struct ErrorBound {
  double relative = 0;
  double floor_a = 0;
  double floor_b = 0;
  double floor_both = 0;
};

// Returns the largest dynamic range, in binades, with which all elements of a vector keep all significant
// bits of the split. Precondition: the rule scales vectors. For other rules see in_window().
int window_range(const SplitRule& rule);

// True if the ranges prove that every element of the operand keeps all significant bits of the split. Then
// only the engine's arithmetic contributes floors to the bound.
bool in_window(const SplitRule& rule, const RangeSummary& ranges);

// True if a finite element can overflow a slice. Then error_bound() does not hold.
bool can_overflow(const SplitRule& rule, const RangeSummary& ranges);

// True if the engine's fp32 sums of k products can overflow although the result does not. This is possible if
// residuals are scaled by more bits than earlier slices have, and for FP64 operands.
bool sums_can_overflow(const Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k);

// True if an intermediate result on a grid of int8 digits can round to infinity although the exact result is
// finite. The reason is that the next point of the grid above the type's largest number is a power of two
// beyond the type.
bool grid_can_overflow(const Program& program, OperandType type, const RangeSummary& a, const RangeSummary& b,
                       std::int64_t k);

// Returns the bound for inner length k. `a_in_window`, `b_in_window`: results of in_window() for the
// operands.
ErrorBound error_bound(const Program& program, Accumulator accumulator, std::int64_t k, bool a_in_window,
                       bool b_in_window);

// Returns the largest relative loss of a single product inside the windows by splits and left-out products.
// It does not depend on the engine.
double split_loss(const Program& program);

// False if the program's error is proved to exceed the coefficient for some product of two numbers of the
// type. Coefficient 0 means correct rounding: then false if the program does not round some sum correctly.
// The result true proves nothing.
bool can_meet(const Program& program, OperandType type, double coefficient);

// Returns `bound` as one coefficient of (|A||B|)_ij, for scaled operands whose dynamic ranges are at most
// `range_a` and `range_b` binades. The coefficient includes the last rounding to the operands' type. (A
// result that is a single fp32 sum needs none.) Precondition: `bound` is the bound inside both windows for
// inner length k.
double relative_bound(const Program& program, const ErrorBound& bound, OperandType type, std::int64_t k,
                      int range_a, int range_b);

// Like relative_bound(), for operands of any dynamic ranges within `depth` (are_within_depth() of
// split/ranges.hpp). Precondition: `bound` is the bound outside both windows.
double bound_at_depth(const Program& program, const ErrorBound& bound, OperandType type, std::int64_t k,
                      int depth);

// Returns the unit roundoff u of the type.
constexpr double unit_roundoff(OperandType type) {
  return type == OperandType::f32 ? 0x1p-24 : type == OperandType::f64 ? 0x1p-53 : 0x1p-106;
}

// Returns the unit of the type's contract. Operations of FP32 and FP64 lose at most one unit roundoff;
// operations on double-double numbers lose a few.
constexpr double contract_unit(OperandType type) {
  return type == OperandType::dd ? 0x1p-104 : unit_roundoff(type);
}

// Returns the coefficient of |a||b| for native inner products of length k. With rounding to nearest they lose
// at most k u |a||b|, in any order, fused or not, without a second-order term (Jeannerod and Rump, Improved
// error bounds for inner products in floating-point arithmetic, 2013); one unit more bounds the sum of the
// rounded products. What underflow may cost is the contract's second term (docs/design/bounds.md). A part of
// a complex element is an inner product of length 2 k. The coefficient for double-double is derived in
// arith/pair_sum.hpp.
constexpr double native_coefficient(OperandType type, std::int64_t k) {
  if (type == OperandType::dd) return (3 * static_cast<double>(k) + 15) * unit_roundoff(type);
  return (static_cast<double>(k) + 1) * unit_roundoff(type);
}

// Returns the coefficient of (|A||B|)_ij in the contracts fp32, fp64 and dd: k + 8 units.
constexpr double contract_of_type(OperandType type, std::int64_t k) {
  return (static_cast<double>(k) + 8) * contract_unit(type);
}

// True if the program has exponents per tile (docs/schemes/mixpert.md). The functions below are for such
// programs.
constexpr bool has_tiles(const Program& program) { return program.schedule.tiles.depth > 0; }

// True if products split their operands themselves (docs/schemes/bf16x6-direct.md).
constexpr bool is_direct(const Program& program) { return program.schedule.is_direct; }

// Returns the largest loss of one element, relative to the power of two that undoes the scale of its panel of
// tiles.
double tile_rounding(const SplitRule& rule);

// Returns the error of splits and left-out products of segments in a sum over k, without the error of
// additions in FP32.
ErrorBound tile_split_bound(const Program& program, std::int64_t k);

// Returns the error of all steps before the last rounding.
ErrorBound tile_bound(const Program& program, std::int64_t k);

}  // namespace kintsugi::core
