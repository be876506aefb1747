// Tests the table of published numbers, and which of them a device gets.
#include "engines/cuda/arch/cards.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace kintsugi::core::cuda {
namespace {

const DeviceTraits unknown_ada{.name = "NVIDIA Unknown",
                               .major = 8,
                               .minor = 9,
                               .sm_count = 100,
                               .clock_mhz = 2000,
                               .memory_gb_per_s = 500};

DeviceTraits traits_of_card(const std::string& name) {
  for (const Card& card : all_cards()) {
    if (card.traits.name == name) return card.traits;
  }
  throw std::runtime_error("no card " + name);
}

TEST(Cards, HaveSourcesAndNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Card& card : all_cards()) {
    EXPECT_TRUE(names.insert(card.traits.name).second) << card.traits.name;
    EXPECT_GE(card.source.size(), 10U) << card.traits.name;
    EXPECT_GT(card.traits.memory_gb_per_s, 0) << card.traits.name;
    EXPECT_GE(card.shared_bytes, 64 << 10) << card.traits.name;
  }
  EXPECT_GE(names.size(), 20U);
}

// A number that was copied wrongly is unlikely to be a power of two per SM and clock. FP32 and FP64 of Hopper
// and Blackwell are published at a higher clock than that of the matrix unit, 1980 MHz of 1830.
TEST(Cards, RatesArePowersOfTwoPerSmAndClock) {
  for (const Card& card : all_cards()) {
    const CardRates& rates = card.rates;
    for (const double rate :
         {rates.fp32, rates.fp64, rates.fp64_matrix, rates.fp16, rates.bf16, rates.tf32, rates.int8}) {
      if (rate == 0) continue;
      const double power = std::log2(card.per_sm(rate) / card.traits.clock_mhz);
      EXPECT_NEAR(power, std::round(power), std::log2(1.1)) << card.traits.name << ": " << rate;
    }
  }
}

// GeForce computes fp16 with sums in FP32 at half the rate, so three terms are slower than FP32.
TEST(Cards, ThreeTermsLoseAgainstFp32OnGeForce) {
  for (const Card& card : all_cards()) {
    const bool is_geforce = card.traits.name.find("GeForce") != std::string::npos;
    if (is_geforce) EXPECT_LT(card.rates.fp16 / 3, card.rates.fp32) << card.traits.name;
    if (!is_geforce && card.rates.fp16 > 0)
      EXPECT_GT(card.rates.fp16 / 3, card.rates.fp32) << card.traits.name;
  }
}

TEST(Cards, ADeviceGetsTheNumbersOfItsName) {
  const DeviceTraits traits = traits_of_card("NVIDIA L40S");
  const Card card = card_of(traits);
  EXPECT_DOUBLE_EQ(card.rates.fp16, 362.1e6 / 2);
  EXPECT_EQ(card.traits.clock_mhz, 2520);
  EXPECT_EQ(card.shared_bytes, 99 << 10);
}

// A part of a card has the name of the whole one on some drivers, and its bandwidth is the driver's.
TEST(Cards, APartOfACardHasAPartOfTheRates) {
  DeviceTraits half = traits_of_card("NVIDIA A100-SXM4-80GB");
  half.sm_count = 54;
  half.memory_gb_per_s = 1000;
  const Card card = card_of(half);
  EXPECT_DOUBLE_EQ(card.rates.int8, 312e6 / 2);
  EXPECT_EQ(card.traits.memory_gb_per_s, 1000);
}

TEST(Cards, AnotherDeviceGetsTheRatesOfItsComputeCapability) {
  const Card card = card_of(unknown_ada);
  EXPECT_DOUBLE_EQ(card.rates.fp32, 128.0 * 100 * 2000);
  EXPECT_DOUBLE_EQ(card.rates.fp16, 256.0 * 100 * 2000) << "half of what cards for workstations have";
  DeviceTraits orin = unknown_ada;
  orin.minor = 7;  // no entry has it: that of 8.6 holds
  EXPECT_DOUBLE_EQ(card_of(orin).rates.fp64, 2.0 * 100 * 2000);
  DeviceTraits future = unknown_ada;
  future.major = 99;
  DeviceTraits newest = future;
  newest.major = 12;
  newest.minor = 0;
  EXPECT_EQ(card_of(future).rates.fp64, card_of(newest).rates.fp64) << "the last architecture that is known";
}

}  // namespace
}  // namespace kintsugi::core::cuda
