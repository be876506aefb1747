// Parameters of the kernels for checked candidates: shapes of thread blocks, shared memory, and tasks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/exact/exact_digits.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"

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

// Shape of the kernel that sums open elements of adjacent vectors (adjacent_vectors.cu).

inline constexpr int adjacent_vectors_threads = 256;
inline constexpr int band_vectors = 32;
// Inner indices that a thread block copies at once, and the number of such chunks that shared memory holds.
inline constexpr int band_chunk = 64;
inline constexpr int band_stages = 4;
// Distance of adjacent inner indices in shared memory, in elements: 32 vectors, and two elements so that
// the lanes of a warp, which read one vector, meet different banks.
inline constexpr int band_pitch = band_vectors + 2;
inline constexpr std::int64_t adjacent_vectors_shared_bytes =
    std::int64_t{band_stages} * band_chunk * band_pitch * static_cast<std::int64_t>(sizeof(double));

// Fewest open elements, for each band, for which bands are read as a whole; and the smallest block of
// C for which that can pay.
inline constexpr std::int64_t least_open_elements_of_band = 4;
inline constexpr std::int64_t least_elements_of_block = std::int64_t{1} << 20;

// Parameters of sample_open_elements. Each thread block computes one sampled element of one batch item.
struct SampleTask {
  DeviceSide sides[2];
  std::int64_t vectors[2] = {};  // number of sampled vectors of each side
  std::int64_t length = 0;       // number of sampled elements of each vector
  std::int64_t step = 1;         // every step-th run of `sample_run` elements is sampled
  int digits = 0;                // significant bits of a result
  double parts = 1;              // number of real parts of an element of C: 1, or 2 if it is complex
  DeviceCheckedChain chain;
  DeviceSelection* selection = nullptr;
  DeviceCheckState* state = nullptr;
  DeviceReport* report = nullptr;
};

inline constexpr std::int64_t sample_threads = 256;
inline constexpr std::int64_t sample_vectors = 16;   // largest number of sampled vectors of a side
inline constexpr std::int64_t sample_length = 2048;  // largest number of sampled elements of a vector
inline constexpr std::int64_t sample_run = 64;       // number of adjacent sampled elements

inline constexpr std::int64_t list_threads = 256;
inline constexpr std::int64_t max_list_blocks = 1056;

}  // namespace kintsugi::core::cuda
