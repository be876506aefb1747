// The memory of a warp that sums an element exactly.
#pragma once

#include <cstdint>

#include "arith/exact/exact_digits.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core::cuda {

inline constexpr int exact_warps = 4;  // of a block
inline constexpr int exact_lanes = 32;

// All zero between elements. Digits of all lanes lie beside each other: whatever digits lanes add to, no two
// meet in a bank.
template <class T>
struct ExactLanes {
  using Widths = ExactWidths<RealOf<T>>;

  std::int64_t lanes[Widths::sum_digits][exact_lanes];
  std::int64_t part[parts_of<T>][Widths::sum_digits];
  std::int64_t result[Widths::result_digits];
};

template <class T>
inline constexpr std::int64_t exact_shared_bytes = exact_warps * sizeof(ExactLanes<T>);

// No more than any architecture from 8.0 on has.
static_assert(exact_shared_bytes<Complex<double>> <= 99 * 1024);

// Warps share the elements evenly, however many there are.
inline constexpr std::int64_t most_exact_blocks = 2112;

}  // namespace kintsugi::core::cuda
