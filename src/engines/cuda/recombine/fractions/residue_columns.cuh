// Residues of a warp's columns on their way through shared memory to the operands of the matrix unit.
#pragma once

#include <algorithm>

#include "engines/cuda/ptx/async_copy.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

inline constexpr int residues_of_word = 4;
inline constexpr int residues_of_step = 8;  // residues that an instruction multiplies

// The residues of a thread's four rows. Each word has residues of one row.
template <int steps>
struct RowResidues {
  static constexpr int words = steps * residues_of_step / residues_of_word;

  std::uint32_t word[words][rows_each];

  // `column` has block_rows residues modulo each of `moduli` moduli. Beyond the last, those of the last stand
  // for residues of weight 0.
  template <int moduli>
  __device__ static RowResidues of_column(const unsigned char* column) {
    RowResidues result;
    static_assert(rows_each == 4);
    const unsigned char* rows = column + rows_each * (threadIdx.x % warp_size);
#pragma unroll
    for (int w = 0; w < words; ++w) {
      std::uint32_t four[residues_of_word];
#pragma unroll
      for (int t = 0; t < residues_of_word; ++t)
        four[t] = *reinterpret_cast<const std::uint32_t*>(
            rows + std::min(w * residues_of_word + t, moduli - 1) * block_rows);
      const std::uint32_t first_01 = __byte_perm(four[0], four[1], 0x5140);  // of rows 0 and 1
      const std::uint32_t first_23 = __byte_perm(four[0], four[1], 0x7362);
      const std::uint32_t last_01 = __byte_perm(four[2], four[3], 0x5140);
      const std::uint32_t last_23 = __byte_perm(four[2], four[3], 0x7362);
      result.word[w][0] = __byte_perm(first_01, last_01, 0x5410);
      result.word[w][1] = __byte_perm(first_01, last_01, 0x7632);
      result.word[w][2] = __byte_perm(first_23, last_23, 0x5410);
      result.word[w][3] = __byte_perm(first_23, last_23, 0x7632);
    }
    return result;
  }
};

// Columns of residues of a warp on their way through shared memory. A column has block_rows residues for each
// modulus.
template <class T, int stored_residues = stored_digit_residues(element_type<T>())>
class ResidueColumns {
 public:
  static constexpr int stages = digit_stages(element_type<T>());
  static constexpr int stage_bytes = stored_residues * block_rows;
  static constexpr int residues = stored_residues;

  // `source`: residues of the block's first row and the warp's first column modulo the first modulus.
  // `stride` is the distance from one modulus to the next, `column_stride` from one of the warp's columns to
  // the next.
  __device__ ResidueColumns(const std::uint8_t* source, std::int64_t stride, std::int64_t column_stride,
                            int moduli, int rows)
      : stride_(stride), column_stride_(column_stride) {
    extern __shared__ __align__(16) unsigned char shared[];
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const int row = lane % copies_of_modulus * copy_bytes;
    const int modulus = lane / copies_of_modulus;
    stages_ = shared + threadIdx.x / warp_size * (stages * stage_bytes);
    target_ = shared_address(stages_) + lane * copy_bytes;
    source_ = source + modulus * stride + row;
    copies_ = row < rows ? divide_up(moduli - modulus, moduli_at_once) : 0;
  }

  // Starts the copies of the next column.
  template <int moduli>
  __device__ void start(bool exists) {
    const std::uint8_t* source = source_;
#pragma unroll
    for (int i = 0; i < moduli / moduli_at_once; ++i) {
      if (exists && i < copies_)
        copy_16_bytes(target_ + started_ * stage_bytes + i * warp_size * copy_bytes, source, true);
      source += moduli_at_once * stride_;
    }
    commit_copies();
    source_ += column_stride_;
    started_ = started_ + 1 == stages ? 0 : started_ + 1;
  }

  // Waits for the next column and returns it. Its memory is used again after stages - 1 more calls of
  // start().
  __device__ const unsigned char* next() {
    await_copies_but<stages - 2>();
    __syncwarp();
    const unsigned char* column = stages_ + taken_ * stage_bytes;
    taken_ = taken_ + 1 == stages ? 0 : taken_ + 1;
    return column;
  }

 private:
  static constexpr int copy_bytes = 16;
  static constexpr int copies_of_modulus = block_rows / copy_bytes;
  static constexpr int moduli_at_once = warp_size / copies_of_modulus;

  unsigned char* stages_;
  std::uint32_t target_;
  const std::uint8_t* source_;
  std::int64_t stride_;
  std::int64_t column_stride_;
  int copies_;  // of a column, by this lane
  int started_ = 0;
  int taken_ = 0;
};

}  // namespace kintsugi::core::cuda
