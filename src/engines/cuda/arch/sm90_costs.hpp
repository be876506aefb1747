// Costs on Hopper, measured on an H200 (docs/results/LOG.md).
#pragma once

#include "engines/cuda/arch/costs.hpp"

namespace kintsugi::core::cuda {

inline constexpr Costs sm90_costs{
    // The factors of k-blocks with several sums were measured on an H100: 2 sums take 1.03 to 1.17 times as
    // long as one; in tiles of 32 columns 4 sums take at most the time that is expected for one.
    .multi_term = {.launch = 1.4,
                   .two_sums_factor = 1.09,
                   .four_sums_factor = 1.17,
                   .four_sums_factor_alone = 1.5,
                   .small_tile = 1,
                   .segment_sums = 10,
                   .memory_rate = 4.1e6,
                   .cache_rate = 9e6,
                   .narrow_cache_rate = 6.4e6},
    .call = {.copy_rate = 4.26e6,
             .split_launch = 6,
             .split_launch_alone = 5,
             .split_rate = 0.7,
             .long_vector = 13700,
             .split_launch_long = 15,
             .split_rate_long = 0.5,
             .native_launch = 2.5,
             .native_ends = 6,
             .native_rate = 52e6,
             .native_rate_short = 48e6,
             .native_read_short = 1.9e6,
             .native_read_shortest = 2.3e6,
             .selection = 3,
             .throttling = 0.2,
             .throttled_product = 60},
    .native = {NativeCosts{33e-3, 50e6}, NativeCosts{12.5e-3, 56e6}, NativeCosts{87e-3, 53e6},
               NativeCosts{55e-3, 54e6}},
    .residues = {ResidueCosts{}, ResidueCosts{25, 0.67e-6}, ResidueCosts{600, 65e-6 / 35},
                 ResidueCosts{300, 1.45e-6}}};

}  // namespace kintsugi::core::cuda
