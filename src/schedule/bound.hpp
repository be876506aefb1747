// A-priori bound of the error of a schedule's additions.
#pragma once

#include <cstdint>
#include <span>

#include "formats/format.hpp"
#include "schedule/accumulator.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core {

// Returns c such that the computed sum differs from the exact sum of the schedule's terms by at most c *
// (|A||B|)_ij. Precondition: |a_s| <= ratios_a[s] * |a| and |b_t| <= ratios_b[t] * |b| for all slices, with
// the weights of the schedule applied.
//
// Derivation. Let w_t = ratios_a * ratios_b of term t and e(n) the accumulator's bound for a run of
// n products relative to the magnitudes in it (schedule/accumulator.hpp).
//  - Term-wise order: the run of term t adds to an accumulator that holds the terms of its group before it,
//    so it loses at most e(n) * (w_1 + ... + w_t) * |a||b| over the block's n indices.
//  - Alternating order: at worst every run adds to everything that the group holds at its end.
//  - A rescaling by a power of two is exact (fp32 accumulators stay far from subnormal: slices are scaled,
//    fp16 products are multiples of 2^-48; rescale_exponent >= -24 keeps that so).
//  - Outside the engine b blocks are added with b - 1 roundings of u = 2^-24 each; the first addition, to
//    zero, is exact. Joint sums take an addition for every group of every block.
//  - With cuBLAS every term of a block is added outside. e(n) contains what such an addition loses of the
//    block's own terms; this bound adds what it loses of earlier blocks.
//  - Additions in fp64 (adds_outside_in_fp64) lose no more. Two addends that are rounded to fp64 and then to
//    fp32 give the same result as one rounding to fp32 (Figueroa, When is double rounding innocuous?, 1995:
//    53 >= 2 * 24 + 2). For more addends, b - 1 roundings of 2^-53 and a last one of u are below 2 u.
//  - Integer sums are exact: 0, or infinity where an accumulator may wrap within a block.
// Second-order terms: the magnitudes above are those of computed partial sums, each at most (1 + c) times the
// exact one. If all losses in terms of exact magnitudes add up to f, the total loss is at most exp(f) - 1.
double accumulation_bound(const Schedule& schedule, std::span<const double> ratios_a,
                          std::span<const double> ratios_b, Accumulator accumulator, const Format& format,
                          std::int64_t k);

}  // namespace kintsugi::core
