// Shared memory of a warp that sums an element exactly.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/exact/exact_digits.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core::cuda {

inline constexpr int exact_warps = 4;  // warps per thread block
inline constexpr int exact_lanes = 32;

// Digits of a sum of any finite products, and those of most sums: 848 bits, for rows and columns of about 350
// binades. Four times as many warps that need few digits fit an SM.
template <class T>
inline constexpr int all_digits = ExactWidths<RealOf<T>>::sum_digits;
template <class T>
inline constexpr int few_digits = std::min(18, all_digits<T>);

// Digits of a warp's sums, all zero between elements. A digit of all lanes is contiguous: whichever digits
// the lanes add to, they access different banks.
template <class T, int Digits>
struct ExactLanes {
  std::int64_t lanes[Digits][exact_lanes];
  std::int64_t part[parts_of<T>][Digits];
  std::int64_t result[ExactWidths<RealOf<T>>::result_digits];
};

// Bytes of a thread block whose warps need all digits; of one whose warps need few, or one warp all.
template <class T>
inline constexpr std::int64_t exact_shared_bytes = exact_warps * sizeof(ExactLanes<T, all_digits<T>>);
template <class T>
inline constexpr std::int64_t recompute_shared_bytes = std::max(exact_warps *
                                                                    sizeof(ExactLanes<T, few_digits<T>>),
                                                                sizeof(ExactLanes<T, all_digits<T>>));

// Every architecture from 8.0 on has that much shared memory.
static_assert(exact_shared_bytes<Complex<double>> <= 99 * 1024);

// Thread blocks of a launch, at most; their warps share the elements evenly.
inline constexpr std::int64_t max_exact_blocks = 2112;

}  // namespace kintsugi::core::cuda
