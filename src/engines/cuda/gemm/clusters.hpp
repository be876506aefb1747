// What launches of clusters need to know.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "split/slices.hpp"

namespace kintsugi::core::cuda {

// Of the current device; clusters as many as are at work at once.
std::int32_t sm_count();
std::int32_t clusters_of(std::int32_t sm_count);
std::int32_t clusters_of_device();

// Boxes of `rows` vectors and 128 bytes of k of one slice, of some items' slices.
TensorMap tensor_map(const Slices& slices, std::int64_t items, std::int64_t rows);

}  // namespace kintsugi::core::cuda
