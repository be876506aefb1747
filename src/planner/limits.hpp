// Limits by which plans choose candidates and that are not costs of a profile, with their reasons. Limits
// that belong to an architecture are in DeviceThresholds (engines/cuda/step_data.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core::limits {

// An emulation on the host must be expected to take less than this share of the native product's time: more
// than measurements scatter.
inline constexpr double max_time_ratio_on_host = 0.95;
// Shorter products of uniform elements by int8x6 deviate by more than native ones, so that norms refuse them
// (prove_digits()).
inline constexpr std::int64_t least_length_of_digits = 640;

// Numbers of multiply-adds of FP64 products by norms on a device. A candidate that is not selected costs the
// launches of its kernels, 7 us at n = 1024 and 15 us at 4096 where candidates have kernels of their own.
// - Shorter products than `short_products` have a single emulation: early exits take too much of their time.
// - From `medium_products` on sixteen moduli may follow: they take a tenth less time than seventeen, whose
//   integers have three limbs; but only if C is one block, of at most `elements_of_tile` elements, since each
//   block costs the launches once more.
// - From `long_products` on it pays to accept operands of wider range.
inline constexpr double short_products = 0x1p31;
inline constexpr double medium_products = 0x1p36;
inline constexpr double long_products = 0x1p38;
inline constexpr double elements_of_tile = 0x1p24;
// A candidate with more moduli than the first must be expected to take less than this share of the time of
// cuBLAS. Measured: the kernel of the native candidate takes 1.1 to 1.3 times as long as cuBLAS
// for n = 2048 to 8192 (lab/results/log/2026-11-27-any-number-of-moduli.md), and emulations take up to 1.15
// times as long as expected below 2048.
inline constexpr double max_time_ratio_of_later = 1.04;

// Numbers of multiply-adds below which exact products have one, two and three checked candidates. The
// launches of a candidate that exits early take 12 us.
inline constexpr double one_checked_candidate = 0x1p28;
inline constexpr double two_checked_candidates = 0x1p31;
inline constexpr double three_checked_candidates = 0x1p33;
// Exact products of at most `few_elements` elements of C and vectors on either side, with sums of `long_sum`
// products or more, are summed without slices: slices are stored in tiles of 128 vectors, so few long vectors
// would take gigabytes of padding.
inline constexpr std::int64_t few_elements = 1024;
inline constexpr std::int64_t long_sum = 65536;
// So are real FP64 products on the host with at most so many rows, columns or inner indices: (524288 x 2) (2
// x 3) took 520 ms by residues and takes 19 ms by exact sums (Zen 5).
inline constexpr std::int64_t short_side = 4;

// Largest share of the native time that products of operands that are split while they are multiplied may be
// expected to take. They take one launch, whatever the data are, and the native times are lower estimates;
// but below 8 us cuBLAS is as fast as any kernel.
inline constexpr double max_time_ratio_of_direct = 0.98;
inline constexpr double least_native_microseconds = 8;

// Mean depth that a candidate must accept to precede the others: uniformly and normally distributed numbers
// have less.
inline constexpr int min_mean_depth = 8;
// Refusals of a level of MixPert that are expected for each acceptance. Real numbers rarely have a range of
// only a few binades: of 2^20 uniform numbers the least is about 20 binades below the largest.
inline constexpr double refusals_of_level = 3;

// Rate of words of 52 bits, relative to native FP32, that tells the kernels with AVX-512 IFMA from slower
// ones. Words multiplied with IFMA are faster than residues with AMX: 0.44 and 0.31 of DGEMM's rate at n =
// 2048 on one core of a Xeon with both. The relative costs do not show this, since the cost of residues does
// not contain the reduction of every sum modulo 15 numbers.
inline constexpr double rate_of_fast_words = 0.15;

}  // namespace kintsugi::core::limits
