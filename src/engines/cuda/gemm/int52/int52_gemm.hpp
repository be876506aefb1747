// Products of slices of 52-bit words.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Computes all products of a schedule in which the group of slices s and t is s + t.
void multiply_words(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums);

}  // namespace kintsugi::core::cuda
