// FP32 products of different shapes in one launch (bf16x6-direct), with the bits that each has alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Products of equal shape: a batch.
struct DeviceGroup {
  DeviceTile tile;  // all of C, of the first item
  std::int64_t items = 1;
};

// True if the current device has kernels for groups, and they take these products. Precondition: no extent
// is 0.
bool takes_direct_group(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t items);

// Expected microseconds of one launch for products of these shapes, and what each of them adds to it. Nothing
// if the device was never measured.
struct GroupTimes {
  double together;
  std::vector<double> of_each;
};
std::optional<GroupTimes> expected_group_times(std::span<const DeviceShape> shapes);

// Bytes of scratch of `products` products in `groups` groups.
std::size_t direct_groups_bytes(std::int64_t products, std::int64_t groups);

// Multiplies all groups, by one launch for all that are contiguous along the same extents. Precondition:
// takes_direct_group() of each of them.
void launch_direct_groups(const Queue& queue, std::span<const DeviceGroup> groups, DeviceReport* report,
                          std::byte* scratch);

}  // namespace kintsugi::core::cuda
