// Enumerates, simulates and measures MixPert's accuracy and overhead.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/numerics/segment_products.hpp"
#include "lab/numerics/tile_ranges.hpp"
#include "tools/support.hpp"

namespace kintsugi::tools {

struct AnalyseRequest {
  std::int64_t samples = 1'000'000;  // random products of two numbers
  std::int64_t tiles = 50;           // random products of two tiles for each range
  std::uint64_t seed = 1;
  std::vector<std::int64_t> sizes{256, 512, 1024};
  bool json = false;
};

// Frobenius errors of mixpert-4 with both rules for a tile's exponent. B is 2^-shift times as large as A.
struct PairError {
  int shift = 0;
  double operand = 0;  // error with exponent=operand
  double pair = 0;     // error with exponent=pair
};

// Seconds of one square product on the engine cpu, one thread.
struct Overhead {
  std::int64_t size = 0;
  double total = 0;
  double packing = 0;  // total minus the time with both operands prepared
  // Time of the conversion of INT32 sums to FP32 every 32 inner indices. A product with tiles of 256 converts
  // an eighth as often, so that it saves 7/8 of this time. The conversion's time is computed from the saving.
  double conversion = 0;
};

struct MixpertAnalysis {
  lab::EnumeratedErrors enumerated;
  lab::SimulatedErrors nearest;
  lab::SimulatedErrors towards_zero;
  std::vector<lab::RangeErrors> ranges;
  std::vector<PairError> pairs;
  std::vector<Overhead> overheads;
};

// Returns the seconds of a square product with both operands prepared.
double prepared_seconds(const std::string& scheme, std::int64_t size);
// Measures the time of a square product of mixpert-4, and how much of it its steps take.
Overhead measure_overhead(std::int64_t size);

MixpertAnalysis analyse_mixpert(const AnalyseRequest& request);

}  // namespace kintsugi::tools
