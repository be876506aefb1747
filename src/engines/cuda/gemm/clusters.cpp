#include "engines/cuda/gemm/clusters.hpp"

#include <algorithm>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"

namespace kintsugi::core::cuda {

namespace {

int tensor_map_type(const Format& format) {
  switch (format.id) {
    case FormatId::fp16: return tensor_map_fp16;
    case FormatId::bf16: return tensor_map_bf16;
    case FormatId::int8: return tensor_map_bytes;
    default: fail(Status::internal, "no tensor maps of slices in {}", format.name);
  }
}

}  // namespace

std::int32_t sm_count() { return device_attribute(sm_count_attribute, current_device()); }

std::int32_t clusters_of(std::int32_t sms) { return std::min(max_clusters, sms / gemm_cluster_size); }
std::int32_t clusters_of_device() { return clusters_of(sm_count()); }

TensorMap tensor_map(const Slices& slices, std::int64_t items, std::int64_t rows) {
  TensorMap map;
  const auto element_bytes = static_cast<std::uint64_t>(slices.element_bytes());
  const auto length = static_cast<std::uint64_t>(slices.vector_stride());
  const auto vectors = static_cast<std::uint64_t>(slices.vectors);  // copies after them are zeros
  const std::uint64_t lengths[3]{length, vectors, static_cast<std::uint64_t>(slices.count * items)};
  const std::uint64_t strides[2]{length * element_bytes,
                                 static_cast<std::uint64_t>(slices.slice_stride()) * element_bytes};
  const std::uint32_t box[3]{static_cast<std::uint32_t>(128 / element_bytes),
                             static_cast<std::uint32_t>(rows), 1};
  const std::uint32_t steps[3]{1, 1, 1};
  check(driver().tensor_map_encode(&map, tensor_map_type(*slices.format), 3, slices.data, lengths, strides,
                                   box, steps, 0, tensor_map_swizzle_128, tensor_map_promotion_256, 0),
        "cuTensorMapEncodeTiled");
  return map;
}

TensorMap byte_tensor_map(std::byte* data, const std::array<std::uint64_t, 5>& lengths,
                          const std::array<std::uint64_t, 4>& strides,
                          const std::array<std::uint32_t, 5>& box) {
  TensorMap map;
  const std::array<std::uint32_t, 5> steps{1, 1, 1, 1, 1};
  check(
      driver().tensor_map_encode(&map, tensor_map_bytes, 5, data, lengths.data(), strides.data(), box.data(),
                                 steps.data(), 0, tensor_map_swizzle_128, tensor_map_promotion_256, 0),
      "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace kintsugi::core::cuda
