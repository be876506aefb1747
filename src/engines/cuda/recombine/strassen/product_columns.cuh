// Residues of Strassen's seven products, on their way from memory to the matrix unit.
#pragma once

#include "arith/residue/strassen.hpp"
#include "engines/cuda/ptx/async_copy.cuh"
#include "engines/cuda/ptx/integer_mma.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/recombine/strassen/block.cuh"

namespace kintsugi::core::cuda {

// Residues of the seven products as left operands of the matrix unit (PTX ISA, mma.m16n8k32). Rows 0 ... 7 of
// an operand are the even rows of a unit, rows 8 ... 15 the odd ones. Lane l has residues of rows l / 4 and
// l / 4 + 8, modulo moduli 2 (l % 4), 2 (l % 4) + 1, 2 (l % 4) + 8 and 2 (l % 4) + 9.
struct ProductResidues {
  static constexpr int units = 2;

  std::uint32_t word[strassen_products][units][2];
};

// Columns of the products that a warp copies to shared memory, one after the other.
class ProductColumns {
 public:
  // `source`: residues of the block's first row and the warp's first column, of product 0 modulo the first
  // modulus. `stride` is the distance from one modulus to the next, `column_stride` from one of the warp's
  // columns to the next.
  __device__ ProductColumns(const std::uint8_t* source, std::int64_t stride, std::int64_t column_stride,
                            int moduli, int rows)
      : stride_(stride), column_stride_(column_stride), moduli_(moduli) {
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const std::uint32_t column = warps_memory();
    const int chunk = lane % chunks;
    const int modulus = lane / chunks;
    target_ = column + place(modulus, chunk);
    source_ = source + modulus * stride + chunk * chunk_rows;
    copies_ = chunk * chunk_rows < rows ? divide_up(moduli - modulus, moduli_at_once) : 0;
    // Lanes give the addresses of eight moduli each: of the lower and the upper eight of a chunk, and of the
    // next chunk.
    operand_ = column + place(lane / 8 % 2 * 8 + lane % 8, lane / 16);
  }

  // Starts the copies of the next column. The column before must have been loaded by all lanes.
  __device__ void start(bool exists) {
    if (exists) {
      const std::uint8_t* source = source_;
#pragma unroll
      for (int q = 0; q < strassen_products; ++q) {
#pragma unroll
        for (int i = 0; i < max_real_digit_residues / moduli_at_once; ++i) {
          if (i < copies_)
            copy_16_bytes_of_line(target_ + q * product_bytes + i * warp_size * chunk_rows,
                                  source + i * moduli_at_once * stride_);
        }
        source += moduli_ * stride_;
      }
    }
    commit_copies();
    source_ += column_stride_;
  }

  // Waits for all copies that were started.
  __device__ static void await() {
    await_copies();
    __syncwarp();
  }

  // Loads units `first` and first + 1 of the column whose copies were started last. All lanes have then
  // loaded what they have read before.
  __device__ void load(int first, ProductResidues& residues) const {
    const std::uint32_t operand = operand_ ^ static_cast<std::uint32_t>(first * chunk_rows);
#pragma unroll
    for (int q = 0; q < strassen_products; ++q) {
      std::uint32_t
          two[4];  // two moduli of two rows each: of the first unit, the upper moduli, of the next unit
      load_transposed(operand + q * product_bytes, two);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        residues.word[q][i][0] = __byte_perm(two[2 * i], two[2 * i + 1], 0x6420);
        residues.word[q][i][1] = __byte_perm(two[2 * i], two[2 * i + 1], 0x7531);
      }
    }
    __syncwarp();
  }

 private:
  static constexpr int chunk_rows = strassen_unit_rows;  // rows of a copy, one byte each
  static constexpr int chunks = StrassenBlock::units;
  static constexpr int moduli_at_once = warp_size / chunks;
  static constexpr int product_bytes = max_real_digit_residues * chunks * chunk_rows;
  static_assert(chunk_rows == 16 && chunks == 4);
  static_assert(strassen_products * product_bytes == strassen_column_bytes);

  // Place of the residues of a chunk in a product's memory. Eight moduli of a chunk are in different banks.
  __device__ static int place(int modulus, int chunk) {
    return (modulus * chunks + (chunk ^ (modulus / 2 % chunks))) * chunk_rows;
  }
  __device__ static std::uint32_t warps_memory() {
    extern __shared__ __align__(128) unsigned char shared[];
    return shared_address(shared) + threadIdx.x / warp_size * strassen_column_bytes;
  }

  std::uint32_t target_;
  std::uint32_t operand_;
  const std::uint8_t* source_;
  std::int64_t stride_;
  std::int64_t column_stride_;
  int moduli_;
  int copies_;  // of a product, by this lane
};

}  // namespace kintsugi::core::cuda
