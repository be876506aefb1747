// Parameters of the kernels of Ozaki scheme I.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/device_ozaki1.hpp"

namespace kintsugi::core::cuda {

// Slices without the host's pointer to their format: elements are FP64 if `wide`, else fp16.
struct SliceArray {
  std::byte* data = nullptr;
  bool wide = false;
  std::int32_t count = 0;
  std::int64_t length = 0;
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
};

inline SliceArray slice_array(const Slices& slices) {
  return {slices.data,
          slices.format->id == FormatId::fp64,
          slices.count,
          slices.k,
          slices.vector_stride(),
          slices.slice_stride()};
}

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

struct SuccessiveTasks {
  SuccessiveTask task[2];
  DeviceCondition condition;
};

struct WeighingTask {
  DeviceSide b;
  DeviceBlockSliceCounts slice_counts;
  double* weights = nullptr;
  DeviceCondition condition;
};

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

// Integer matrices of `count` products, stored contiguously.
struct ProductGroups {
  std::int64_t* data = nullptr;
  std::int64_t group_stride = 0;
  std::int32_t count = 0;
  std::int32_t first_a = 0;  // slice of A in the first product
  std::int32_t b = 0;        // slice of B in all products
};

// Vectors per thread block of the split, and lanes per vector: eight neighboring vectors are whole sectors
// where vectors are strided in memory.
inline constexpr int successive_vectors = 8;
inline constexpr int successive_lanes = 32;
inline constexpr int successive_threads = successive_vectors * successive_lanes;

// Inner indices that a thread block weighs, and the parts that each is summed in.
inline constexpr int weighed_indices = 32;
inline constexpr int weighing_parts = 8;

inline constexpr int slice_count_threads = 256;  // threads for one row

}  // namespace kintsugi::core::cuda
