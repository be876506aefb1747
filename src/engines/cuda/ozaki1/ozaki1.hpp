// Parameters of the kernels of Ozaki scheme I.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/ozaki1/step_data.hpp"
#include "engines/cuda/recombine/arguments.hpp"

namespace kintsugi::core::cuda {

// Slices (split/slices.hpp) for kernels, without the host's pointer to their format.
struct SliceArray {
  std::byte* data = nullptr;
  bool is_fp64 = false;  // true: elements are FP64; false: fp16
  std::int32_t count = 0;
  std::int64_t length = 0;  // elements of a vector, without padding
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
};

inline SliceArray slice_array(const Slices& slices) {
  return {.data = slices.data,
          .is_fp64 = slices.format->id == FormatId::fp64,
          .count = slices.count,
          .length = slices.k,
          .vector_stride = slices.vector_stride(),
          .slice_stride = slices.slice_stride()};
}

// A DeviceSuccessiveSplit for kernels, without pointers to the host.
struct SuccessiveTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  const VectorRange* ranges = nullptr;  // starts with vector `first`
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  SliceArray slices;
  std::int32_t bits = 0;
  bool by_sigma = false;
  DeviceSliceExponents exponents;
  DeviceSuccessiveSplit::Complete complete = DeviceSuccessiveSplit::Complete::unchecked;
  std::int32_t max_depth = 0;
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
  std::int64_t blocks = 0;  // thread blocks
};

// The grid has the thread blocks of the first operand, then those of the second.
struct SuccessiveTasks {
  SuccessiveTask task[2];
  DeviceCondition condition;
};

// Parameters of weigh_inner_indices.
struct WeighingTask {
  DeviceSide b;
  DeviceBlockSliceCounts slice_counts;
  double* weights = nullptr;
  DeviceCondition condition;
};

// Parameters of find_slice_counts: a DeviceRowSliceCounts for kernels, without pointers to the host.
struct RowSliceCountsTask {
  DeviceSide a;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  SliceArray slices;
  DeviceSliceExponents exponents;
  const double* weights = nullptr;
  std::int32_t bits = 0;
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
  DeviceCondition condition;
};

// Integer matrices of `count` products of slices. Each product has its own group of accumulators; group g has
// the product of slice first_a + g of A and slice b of B.
struct ProductGroups {
  std::int64_t* data = nullptr;
  std::int64_t group_stride = 0;
  std::int32_t count = 0;
  std::int32_t first_a = 0;
  std::int32_t b = 0;
};

// Tile of a cluster of the kernel that multiplies slices by wgmma. Its thread blocks have the same rows of C;
// each loads a share of their slices, to all of them. A thread block has two consumer warpgroups of 64
// vectors. The rows of C are operand B of the instruction, so a thread has pairs of adjacent sums.
struct SliceTile {
  static constexpr int cluster = 2;          // thread blocks; with four, products take 8 % longer
  static constexpr int rows = 256;           // rows of C of all thread blocks
  static constexpr int block_vectors = 128;  // vectors of B of a thread block
  static constexpr int vectors = cluster * block_vectors;
  static constexpr int block_k = 64;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int max_stages = 4;
  static constexpr int threads = 384;
  static constexpr int stage_bytes = (rows + block_vectors) * block_k * 2;

  // Sums of several runs of k-blocks. After a run, sums are rounded to multiples of 2^carried_bits; the
  // multiples are added in shared memory, two in a word, and the accumulators keep the rests.
  static constexpr int carried_bits = 16;
  static constexpr int carry_bytes = rows * block_vectors * 2;
  // Largest number of inner indices of a run whose products, and a rest, FP32 sums without an error.
  static constexpr std::int64_t carried_run(int bits) {
    return ((1 << 24) - (1 << (carried_bits - 1))) >> (2 * bits) & -block_k;
  }
  // True if carries of 16 bits hold the sums over k.
  static constexpr bool carries(std::int64_t k, int bits) {
    return carried_run(bits) > 0 && k <= std::int64_t{1} << (14 + carried_bits - 2 * bits);
  }

  static constexpr int stages(bool carries) { return carries ? max_stages - 1 : max_stages; }
  static constexpr int shared_bytes(bool carries) {
    return stages(carries) * stage_bytes + (carries ? carry_bytes : 0) + 1024;
  }
};

// Parameters of add_slice_products. The kernel multiplies slices `groups.first_a` to groups.first_a +
// groups.count - 1 of A by slices first_b to end_b - 1 of B, as far as elements of the tile need the
// products.
struct SliceProductsParams {
  DeviceProductSums sums;
  ProductGroups groups;  // without data, products are added to the sums
  std::int32_t first_b = 0;
  std::int32_t end_b = 0;
  std::int32_t tile_rows = 0;  // rows of tiles of clusters
  std::int32_t tile_columns = 0;
  std::int32_t k_blocks = 0;
  std::int32_t run_blocks = 0;  // k-blocks whose products FP32 adds to an accumulator without an error

  KINTSUGI_HOST_DEVICE bool carries() const { return groups.data == nullptr && run_blocks < k_blocks; }
};

// Vectors per thread block of the split, and lanes per vector. If vectors are adjacent in memory, their eight
// elements of one inner index fill whole sectors.
inline constexpr int successive_vectors = 8;
inline constexpr int successive_lanes = 32;
inline constexpr int successive_threads = successive_vectors * successive_lanes;

// Threads of a thread block that has a vector in registers, and elements of each.
inline constexpr int max_vector_threads = 512;
inline constexpr int vector_elements = 32;

// Inner indices that a thread block weighs, and number of threads that share the sum of each.
inline constexpr int weighed_indices = 32;
inline constexpr int weighing_parts = 8;

inline constexpr int slice_count_threads =
    256;  // threads per block of find_slice_counts, which has counted_rows rows
inline constexpr int counted_rows = 4;

}  // namespace kintsugi::core::cuda
