// Structures that have kernels, and their tiles.
#pragma once

#include <array>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// fp16x3
inline constexpr Structure<3> joined_terms{
    {Term{1, 0, 0}, Term{0, 1, 0}, Term{0, 0, 0}}, 2, 2, 1, term_block, 0, false, term_segment, 2};
// fp16x3-wide
inline constexpr Structure<3> rescaled_terms{
    {Term{1, 0, 0}, Term{0, 1, 0}, Term{0, 0, 0, true}}, 2, 2, 1, term_block, 0, false, term_segment, 2};
// bf16x6
inline constexpr Structure<6> six_terms{
    {Term{0, 2, 0}, Term{1, 1, 0}, Term{2, 0, 0}, Term{0, 1, 0, true}, Term{1, 0, 0}, Term{0, 0, 0, true}},
    3,
    3,
    1,
    term_block,
    0,
    false,
    term_segment,
    1};

// Stages of low slices are freed before those of high ones, so that fewer suffice. Where the sums are
// rescaled, the matrix unit is idle for longer, and reading A's high slices from registers wins some of that
// time back (n = 8192: 206 TFLOP/s instead of 199); without rescaling registers have no room for that, and
// nothing would be gained. Narrower tiles gain nothing by it, and small tiles lose a twentieth.
inline constexpr std::array joined_tiles{MultiTermTile{192, {3, 2, 0}, false},
                                         MultiTermTile{128, {4, 3, 0}, false},
                                         MultiTermTile{64, {5, 4, 0}, false}};
inline constexpr std::array rescaled_tiles{MultiTermTile{192, {3, 2, 0}, true},
                                           MultiTermTile{128, {4, 3, 0}, false},
                                           MultiTermTile{64, {5, 4, 0}, false}};
inline constexpr std::array six_term_tiles{MultiTermTile{128, {3, 2, 2}, false},
                                           MultiTermTile{64, {4, 3, 2}, false}};

// Small tiles of two fp16 slices.
inline constexpr std::array small_tiles{SmallTile{32}, SmallTile{64}, SmallTile{128}};

}  // namespace kintsugi::core::cuda
