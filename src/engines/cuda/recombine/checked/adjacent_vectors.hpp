// Shape of the kernel that sums open elements of adjacent vectors (adjacent_vectors.cu).
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda
