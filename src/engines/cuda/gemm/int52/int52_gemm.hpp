// Products of slices of 52-bit words.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Computes all products of a schedule. In the schedule the products of slices s and t with the same s + t
// must form a group.
void multiply_words(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums);

}  // namespace kintsugi::core::cuda
