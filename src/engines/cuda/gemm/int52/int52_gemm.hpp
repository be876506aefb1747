// Products of slices of 52-bit words.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// All products of a schedule whose group of slices s and t is s + t.
void multiply_words(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums);

}  // namespace kintsugi::core::cuda
