// Times of products by MixPert's levels on the engine cpu.
#pragma once

#include <cstdint>
#include <string>

#include "lab/numerics/mixpert.hpp"

namespace kintsugi::tools {

// Seconds of one square product on the engine cpu, one thread. Differences of times beside other load may be
// any number; the parts are kept between 0 and the total.
struct Overhead {
  double total = 0;
  double packing = 0;  // total minus the time with both operands prepared
  // Time of the conversion of INT32 sums to FP32 every 32 inner indices. A product with tiles of 256 converts
  // an eighth as often, so that it saves 7/8 of this time. The conversion's time is computed from the saving.
  double conversion = 0;
};

// Measures the time of a square product of mixpert-4, and how much of it its steps take.
Overhead measure_overhead(std::int64_t size);
// Returns the seconds of a square product with both operands prepared.
double prepared_seconds(const std::string& scheme, std::int64_t size);

}  // namespace kintsugi::tools
