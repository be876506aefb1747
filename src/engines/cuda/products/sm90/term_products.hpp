// Products of a scheme's terms by kernels of our own for compute capability 9.0, from slices to C in one launch.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "engines/cuda/products/sm90/term_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Whether there is a kernel for these terms, whose sums are those of the accumulator h200.
bool has_term_products(const Schedule& schedule, FormatId format, EntryType type);

// For the sums that one cluster hands to another, and those of earlier segments of k.
std::size_t term_scratch_bytes(const DeviceShape& shape);

// One way to compute a product, with the same bits as any other: tiles of clusters in waves, or small ones.
using TermWay = std::variant<TermChoice, SmallTileChoice>;

// All that there are.
std::vector<TermWay> term_ways(const DeviceFusedProduct& product);

// C = alpha * sum + beta * C, in that way, or the one that is expected to be the quickest. `scratch` has
// term_scratch_bytes() of a shape that is at least as large.
void multiply_terms(const Queue& queue, const DeviceFusedProduct& product, const TermWay& way,
                    std::byte* scratch);
void multiply_terms(const Queue& queue, const DeviceFusedProduct& product, std::byte* scratch);

// As measured on an H200 (docs/results/LOG.md).
DeviceTimes expected_term_times(const DeviceShape& shape);

}  // namespace kintsugi::core::cuda
