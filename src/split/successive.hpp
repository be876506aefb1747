// Algorithm 1 of dgemm-tc in integers: slices by successive roundings, each on a grid of its vector's own.
//
//   tau_s = ceil(log2 max_p |rest_p|)     slice_s = RN(rest 2^(bits - tau_s))     rest -= 2^(tau_s - bits)
//   slice_s
//
// so x = sum over s of 2^exponent_s slice_s, |slice_s| <= 2^bits, until every rest is zero. With `by_sigma`
// RN is the paper's own fl((rest + sigma) - sigma), whose grid is twice as coarse for positive rests. A rest
// is a 53-bit integer times the power of two of its element's last bit: nothing overflows, no element is
// scaled, subnormals are as others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "arith/successive.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// One operand's block on its way; memory belongs to the caller.
struct SuccessiveSplit {
  Slices slices;                         // as many as there is room for
  MatrixView<std::int32_t> exponents{};  // (slice, vector); without rests those of the slice before
  Rest* rests = nullptr;                 // vectors x k
  std::int32_t* tops = nullptr;          // tau of each vector's rests
  int bits = 0;
  bool by_sigma = false;
};

// The rests before the first slice: the elements of `operand` (vectors x k; View: OperandView of any type of
// elements). Vectors with NaN or infinities count as zero: nothing of them reaches another element.
template <class View>
void take_rests(const View& operand, std::span<const VectorRange> ranges, const SuccessiveSplit& split,
                int threads);

bool any_rest(const SuccessiveSplit& split);

// Slice s of all vectors, padding included. Where there are `weights`, a number for each inner index,
// weighted[v] = sum over p of |2^exponent_s slice_s(v, p)| weights[p], rounded once: its bits depend on no
// order.
void take_slice(const SuccessiveSplit& split, int s, const double* weights, Scaled* weighted, int threads);

}  // namespace kintsugi::core
