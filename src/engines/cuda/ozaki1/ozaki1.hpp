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

// Vectors per thread block of the split, and lanes per vector. If vectors are adjacent in memory, their eight
// elements of one inner index fill whole sectors.
inline constexpr int successive_vectors = 8;
inline constexpr int successive_lanes = 32;
inline constexpr int successive_threads = successive_vectors * successive_lanes;

// Inner indices that a thread block weighs, and number of threads that share the sum of each.
inline constexpr int weighed_indices = 32;
inline constexpr int weighing_parts = 8;

inline constexpr int slice_count_threads = 256;  // threads per row

}  // namespace kintsugi::core::cuda
