// Rows and columns of C of a thread block that multiplies the tiles that fail Eq. 9.
#pragma once

namespace kintsugi::core::cuda {

inline constexpr int failing_rows = 64;
inline constexpr int failing_columns = 64;
inline constexpr int failing_threads = 64;
inline constexpr int failing_blocks = 8;  // per SM
inline constexpr int failing_shared_bytes = 17 * 1024;

}  // namespace kintsugi::core::cuda
