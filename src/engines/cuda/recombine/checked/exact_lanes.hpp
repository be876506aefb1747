// Shared memory of a warp that sums an element exactly.
#pragma once

#include <cstdint>

#include "arith/exact/exact_digits.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core::cuda {

inline constexpr int exact_warps = 4;  // warps per thread block
inline constexpr int exact_lanes = 32;

// Digits of a warp's sums, all zero between elements. A digit of all lanes is contiguous: whichever digits
// the lanes add to, they access different banks.
template <class T>
struct ExactLanes {
  using Widths = ExactWidths<RealOf<T>>;

  std::int64_t lanes[Widths::sum_digits][exact_lanes];
  std::int64_t part[parts_of<T>][Widths::sum_digits];
  std::int64_t result[Widths::result_digits];
};

template <class T>
inline constexpr std::int64_t exact_shared_bytes = exact_warps * sizeof(ExactLanes<T>);

// Every architecture from 8.0 on has that much shared memory.
static_assert(exact_shared_bytes<Complex<double>> <= 99 * 1024);

// Thread blocks of a launch, at most; their warps share the elements evenly.
inline constexpr std::int64_t max_exact_blocks = 2112;

}  // namespace kintsugi::core::cuda
