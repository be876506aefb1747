// Numbers of SMs and clusters, and tensor maps, for launches of clusters.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "split/slices.hpp"

namespace kintsugi::core::cuda {

// SMs of the current device, and clusters that it holds at once, at most max_clusters.
std::int32_t sm_count();
std::int32_t clusters_of(std::int32_t sm_count);
std::int32_t clusters_of_device();

// Tensor map of the slices of `items` batch items; its boxes have `rows` vectors and 128 bytes of k of one
// slice.
TensorMap tensor_map(const Slices& slices, std::int64_t items, std::int64_t rows);

}  // namespace kintsugi::core::cuda
