// Numbers of SMs and clusters, and tensor maps, for launches with clusters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "split/slices.hpp"

namespace kintsugi::core::cuda {

// Number of SMs of the current device.
std::int32_t sm_count();
// Number of clusters that a device with `sms` SMs, or the current device, holds at once; at most
// max_clusters.
std::int32_t clusters_of(std::int32_t sms);
std::int32_t clusters_of_device();

// Tensor map of the slices of `items` batch items. A box has 128 bytes along k of `rows` vectors of one
// slice.
TensorMap tensor_map(const Slices& slices, std::int64_t items, std::int64_t rows);

// Tensor map of bytes with five dimensions. `lengths` and `box` are those of the dimensions, `strides` in
// bytes those of all but the first one. The first length of the box is 128.
TensorMap byte_tensor_map(std::byte* data, const std::array<std::uint64_t, 5>& lengths,
                          const std::array<std::uint64_t, 4>& strides,
                          const std::array<std::uint32_t, 5>& box);

}  // namespace kintsugi::core::cuda
