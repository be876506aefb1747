// A-priori error bound of a program, derived from its split rules and its schedule.
#pragma once

#include <cstdint>

#include "schedule/accumulator.hpp"
#include "schemes/program.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {

// For alpha = 1, beta = 0, finite operands and no overflow, element by element:
//
//   |C - AB| <= relative * (|A||B|)_ij
//             + floor_a * u_i * ||b_j||_1  +  floor_b * v_j * ||a_i||_1
//             + floor_both * u_i * v_j
//
// u_i, v_j: the factors that undo the scales, 2^-scale of row i of op(A) and of column j of op(B) (1 where a
// rule does not scale). The last rounding to the result's type is not included: half a unit in the last place
// of C, or half the smallest subnormal.
struct ErrorBound {
  double relative = 0;
  double floor_a = 0;
  double floor_b = 0;
  double floor_both = 0;
};

// Largest dynamic range, in binades, of vectors whose elements all keep all significant bits of the split.
// Only for rules that scale vectors; in_window() decides for the others.
int window_range(const SplitRule& rule);

// True if every element of the operand keeps all significant bits of the split, by its exponents; the floors
// of the bound then come from the engine's arithmetic alone.
bool in_window(const SplitRule& rule, const RangeSummary& ranges);

// True if a finite element can overflow a slice. error_bound() does not hold then.
bool can_overflow(const SplitRule& rule, const RangeSummary& ranges);

// True if the engine's fp32 sums of k products can overflow though the result does not. They can where
// residuals are scaled by more bits than the slices before them have, or where operands are FP64.
bool sums_can_overflow(const Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k);

// True if an intermediate result on a grid of int8 digits can round to infinity though the exact result is
// finite: the point of the grid above the type's largest number is the power of two that the type lacks.
bool grid_can_overflow(const Program& program, OperandType type, const RangeSummary& a, const RangeSummary& b,
                       std::int64_t k);

// Returns the bound for inner length k. a_in_window, b_in_window: results of in_window() for the operands.
ErrorBound error_bound(const Program& program, Accumulator accumulator, std::int64_t k, bool a_in_window,
                       bool b_in_window);

// Relative error of splits and left-out products, independent of the engine: the largest loss of a single
// product inside the windows.
double split_loss(const Program& program);

// False if, for some product of two numbers of the type, the program's error provably exceeds the
// coefficient. Coefficient 0 stands for the correctly rounded result: false if the program does not give it
// for some sum. True promises nothing.
bool can_meet(const Program& program, OperandType type, double coefficient);

// `bound` as one relative coefficient of (|A||B|)_ij, for scaled operands whose dynamic ranges are at most
// range_a and range_b binades: the floors are then small multiples of every element. `bound` must be the
// bound inside both windows for inner length k. The coefficient includes the last rounding to the operands'
// type, except where the result is a single sum in fp32, which needs no rounding.
double relative_bound(const Program& program, const ErrorBound& bound, OperandType type, std::int64_t k,
                      int range_a, int range_b);

// Like relative_bound(), for the bound outside both windows and operands within `depth` (are_within_depth()
// of split/ranges.hpp), whatever their dynamic ranges.
double bound_at_depth(const Program& program, const ErrorBound& bound, OperandType type, std::int64_t k,
                      int depth);

// Unit roundoff u of the type, of the last rounding.
constexpr double unit_roundoff(OperandType type) {
  return type == OperandType::f32 ? 0x1p-24 : type == OperandType::f64 ? 0x1p-53 : 0x1p-106;
}

// Unit of the type's contracts. Operations on double-double numbers lose a few units of their roundoff each,
// those of FP32 and FP64 lose one.
constexpr double contract_unit(OperandType type) {
  return type == OperandType::dd ? 0x1p-104 : unit_roundoff(type);
}

// Coefficient of |a||b| for native inner products. Rounded to nearest, they lose at most k u |a||b|, in any
// order, fused or not, without a second-order term (Jeannerod and Rump, Improved error bounds for inner
// products in floating-point arithmetic, 2013). A part of a complex element is such a product of length 2 k.
// For double-double: arith/pair_sum.hpp. Underflow may cost a valid element one more unit
// (arith/underflow.hpp).
constexpr double native_coefficient(OperandType type, std::int64_t k) {
  if (type == OperandType::dd) return (3 * static_cast<double>(k) + 15) * unit_roundoff(type);
  return (static_cast<double>(k) + 1) * unit_roundoff(type);
}

// Coefficient of (|A||B|)_ij in the contracts fp32, fp64 and dd: k + 8 units.
constexpr double contract_of_type(OperandType type, std::int64_t k) {
  return (static_cast<double>(k) + 8) * contract_unit(type);
}

}  // namespace kintsugi::core
