// Published numbers of GPUs (cards.json), by which costs of devices are predicted that nobody measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/cuda/arch/profile.hpp"

namespace kintsugi::core::cuda {

// Multiplications with an addition per microsecond of a whole device; 0: the device has no such units.
struct CardRates {
  double fp32 = 0;
  double fp64 = 0;
  double fp64_matrix = 0;  // of the matrix unit, like all that follow
  double fp16 = 0;         // with sums in FP32
  double bf16 = 0;
  double tf32 = 0;
  double int8 = 0;
};

struct Card {
  // Name, compute capability, SMs, the matrix unit's boost clock, and memory bandwidth.
  DeviceTraits traits;
  CardRates rates;
  std::int64_t shared_bytes = 0;  // most shared memory of a thread block
  std::string source;             // title of the vendor's document

  double per_sm(double rate) const { return rate / traits.sm_count; }
  double fastest_fp64() const { return std::max(rates.fp64, rates.fp64_matrix); }
  // True of cards for graphics, whose FP64 has 1/32 or 1/64 of the rate of FP32. Others have at least 1/2.
  bool has_few_fp64_units() const { return 16 * fastest_fp64() < rates.fp32; }
};

// Returns the cards of the table, once for each of their names.
std::span<const Card> all_cards();

// Returns the published numbers of a device. A card of the device's name is scaled to its SMs and, if known,
// its bandwidth. Another device has the rates of its compute capability at its own clock, or of the nearest
// earlier one.
Card card_of(const DeviceTraits& device);

}  // namespace kintsugi::core::cuda
