// Tests that every family of kernels for floating-point slices has the bits of the reference engine, on
// random schedules, shapes and elements.
#include "engines/cpu/products.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "formats/formats.hpp"
#include "tests/engines/cpu/float_slices.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

std::vector<float> by(const FloatKernels& kernels, const Schedule& schedule, const BothSlices& a,
                      const BothSlices& b, int threads) {
  return sums_by(floats_worker_bytes(schedule), schedule, a, b, Accumulator::fp32, threads,
                 [&](const Multiplication& task) { multiply_floats(task, kernels); });
}

// Small elements of bf16 make products that underflow: there a multiplication and an addition that are
// rounded separately would differ from a fused one.
TEST(Floats, EveryFamilyHasTheBitsOfTheReferenceOnRandomSchedules) {
  const std::vector<std::tuple<const Format*, int, int>> kinds{{&fp16, -24, 3},    {&bf16, -20, 10},
                                                               {&bf16, -90, -50},  {&tf32, -80, 20},
                                                               {&fp8_e4m3, -9, 7}, {&fp8_e5m2, -16, 14}};
  for (std::uint64_t seed = 0; seed < (test::thorough ? 400 : 60); ++seed) {
    Random random(seed);
    const RandomSchedule drawn(random);
    const auto& [format, least, largest] = kinds[seed % kinds.size()];
    const bool large = seed % 8 == 0;
    const int m = between(random, 1, large ? 200 : 50);
    const int n = between(random, 1, large ? 140 : 40);
    const int k = between(random, 1, 150);
    const BothSlices a(*format, drawn.schedule.slices_a, m, k, least, largest, random);
    const BothSlices b(*format, drawn.schedule.slices_b, n, k, least, largest, random);
    const std::vector<float> expected = reference_sums(drawn.schedule, a, b, Accumulator::fp32);
    for (const FloatKernels* kernels : float_families()) {
      EXPECT_TRUE(same_bits(by(*kernels, drawn.schedule, a, b, 1 + static_cast<int>(seed % 3)), expected))
          << kernels->name << ", " << format->name << ", seed " << seed << ": " << m << " x " << n << " x "
          << k;
    }
  }
}

// Intended failure: the comparison above sees another order of the terms.
TEST(Floats, AnotherOrderOfTermsHasOtherBits) {
  Random random(3);
  const BothSlices a(fp16, 2, 40, 60, -3, 3, random);
  const BothSlices b(fp16, 2, 40, 60, -3, 3, random);
  constexpr Structure<2> forward{{Term{0, 0, 0}, Term{1, 1, 0}}, 2, 2, 1, 32, 0};
  constexpr Structure<2> backward{{Term{1, 1, 0}, Term{0, 0, 0}}, 2, 2, 1, 32, 0};
  for (const FloatKernels* kernels : float_families()) {
    EXPECT_FALSE(same_bits(by(*kernels, make_schedule(backward), a, b, 1),
                           reference_sums(make_schedule(forward), a, b, Accumulator::fp32)));
  }
}

}  // namespace
}  // namespace kintsugi::core
