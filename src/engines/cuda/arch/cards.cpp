#include "engines/cuda/arch/cards.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engines/profile_json.hpp"

namespace kintsugi::core::cuda {

extern const char* const cards_text;  // cards.json, written by the build

namespace {

using profile_json::Json;

constexpr double bytes_of_kib = 1024;

// `unit`: multiplications with an addition per microsecond for a number 1 of the table.
CardRates read_rates(const Json& numbers, double unit) {
  const auto rate = [&](const char* name) { return unit * numbers.value(name, 0.0); };
  return {.fp32 = rate("fp32"),
          .fp64 = rate("fp64"),
          .fp64_matrix = rate("fp64_matrix"),
          .fp16 = rate("fp16"),
          .bf16 = rate("bf16"),
          .tf32 = rate("tf32"),
          .int8 = rate("int8")};
}

CardRates scaled(const CardRates& rates, double factor) {
  return {.fp32 = rates.fp32 * factor,
          .fp64 = rates.fp64 * factor,
          .fp64_matrix = rates.fp64_matrix * factor,
          .fp16 = rates.fp16 * factor,
          .bf16 = rates.bf16 * factor,
          .tf32 = rates.tf32 * factor,
          .int8 = rates.int8 * factor};
}

// Rates of a compute capability, per SM and clock.
struct Architecture {
  int major;
  int minor;
  CardRates rates;
  std::int64_t shared_bytes;
  std::string source;
};

struct Tables {
  std::vector<Card> cards;
  std::vector<Architecture> architectures;
};

std::int64_t shared_bytes_of(const Json& entry) {
  return static_cast<std::int64_t>(bytes_of_kib * entry.at("shared_kib_per_block").get<double>());
}

Tables read_tables() {
  const Json document = Json::parse(cards_text);
  Tables tables;
  for (const Json& entry : document.at("cards")) {
    constexpr double fma_of_tflop = 1e6 / 2;  // 10^12 operations per second, in FMA per microsecond
    for (const Json& name : entry.at("names"))
      tables.cards.push_back({.traits = {.name = name,
                                         .major = entry.at("compute_capability").at(0),
                                         .minor = entry.at("compute_capability").at(1),
                                         .sm_count = entry.at("sm_count"),
                                         .clock_mhz = entry.at("clock_mhz"),
                                         .memory_gb_per_s = entry.at("memory_gb_per_s")},
                              .rates = read_rates(entry.at("tflops"), fma_of_tflop),
                              .shared_bytes = shared_bytes_of(entry),
                              .source = entry.at("source")});
  }
  for (const Json& entry : document.at("architectures"))
    tables.architectures.push_back({.major = entry.at("compute_capability").at(0),
                                    .minor = entry.at("compute_capability").at(1),
                                    .rates = read_rates(entry.at("fma_per_clock"), 1),
                                    .shared_bytes = shared_bytes_of(entry),
                                    .source = entry.at("source")});
  return tables;
}

const Tables& tables() {
  static const Tables read = read_tables();
  return read;
}

// Last architecture that is not newer than the device's, or the first one. They are in ascending order.
const Architecture& architecture_of(const DeviceTraits& device) {
  const std::vector<Architecture>& all = tables().architectures;
  const Architecture* found = &all.front();
  for (const Architecture& entry : all) {
    if (std::pair(entry.major, entry.minor) <= std::pair(device.major, device.minor)) found = &entry;
  }
  return *found;
}

}  // namespace

std::span<const Card> all_cards() { return tables().cards; }

Card card_of(const DeviceTraits& device) {
  const auto named =
      std::ranges::find_if(all_cards(), [&](const Card& card) { return card.traits.name == device.name; });
  if (named != all_cards().end()) {
    Card card = *named;
    card.rates = scaled(card.rates, static_cast<double>(device.sm_count) / card.traits.sm_count);
    card.traits.sm_count = device.sm_count;
    if (device.memory_gb_per_s > 0) card.traits.memory_gb_per_s = device.memory_gb_per_s;
    return card;
  }
  const Architecture& architecture = architecture_of(device);
  return {.traits = device,
          .rates = scaled(architecture.rates, device.sm_count * device.clock_mhz),
          .shared_bytes = architecture.shared_bytes,
          .source = architecture.source};
}

}  // namespace kintsugi::core::cuda
