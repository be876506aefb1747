// Shared memory of a warp that sums an element exactly.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/exact/exact_digits.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core::cuda {

inline constexpr int exact_warps = 4;  // warps per thread block
inline constexpr int exact_lanes = 32;

// all_digits hold any sum of finite products. few_digits hold most sums: 18 digits have 848 bits, enough for
// rows and columns whose dynamic range is about 350 binades. With few digits an SM has shared memory for four
// times as many warps.
template <class T>
inline constexpr int all_digits = ExactWidths<RealOf<T>>::sum_digits;
template <class T>
inline constexpr int few_digits = std::min(18, all_digits<T>);

// Digits of a warp's sums. They are zero between elements. Lanes access different banks whichever digits they
// add to, because the same digit of all lanes is contiguous.
template <class T, int Digits>
struct ExactLanes {
  std::int64_t lanes[Digits][exact_lanes];  // each lane's sum of its products
  std::int64_t part[parts_of<T>][Digits];   // sums of all lanes, for each part of the element
  std::int64_t result[ExactWidths<RealOf<T>>::result_digits];  // alpha times the sum plus beta C
};

// Bytes of shared memory of a thread block. exact_shared_bytes: all warps have all digits.
// recompute_shared_bytes: either all warps have few digits, or one warp has all digits.
template <class T>
inline constexpr std::int64_t exact_shared_bytes = exact_warps * sizeof(ExactLanes<T, all_digits<T>>);
template <class T>
inline constexpr std::int64_t recompute_shared_bytes = std::max(exact_warps *
                                                                    sizeof(ExactLanes<T, few_digits<T>>),
                                                                sizeof(ExactLanes<T, all_digits<T>>));

// A thread block can have that much shared memory from compute capability 8.0 on.
static_assert(exact_shared_bytes<Complex<double>> <= 99 * 1024);

// Largest number of thread blocks of a launch. Their warps share the elements evenly.
inline constexpr std::int64_t max_exact_blocks = 2112;

}  // namespace kintsugi::core::cuda
