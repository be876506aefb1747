// Tests that every family of kernels for floating-point slices has the bits of the reference engine, on
// random schedules, shapes and elements.
#include "engines/cpu/products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

using Random = std::mt19937_64;

int between(Random& random, int min, int max) { return std::uniform_int_distribution<int>(min, max)(random); }

// The same slices as packed patterns, for the reference, and in panels. Memory beyond the elements holds NaN,
// except in the lanes that fill a panel.
struct BothSlices {
  BothSlices(const Format& format, int count, std::int64_t vectors, std::int64_t k, int least_exponent,
             int largest_exponent, Random& random)
      : packed(make_slices(format, SliceStorage::packed, count, vectors, k)),
        panels(make_slices(format, SliceStorage::panels, count, vectors, k)),
        packed_memory(packed.bytes(), std::byte{0xff}), panel_memory(panels.bytes(), std::byte{0xff}) {
    packed.data = packed_memory.data();
    panels.data = panel_memory.data();
    for (int s = 0; s < count; ++s) {
      for (std::int64_t v = 0; v < round_up(vectors, Slices::panel_vectors); ++v) {
        for (std::int64_t p = 0; p < k; ++p) {
          const double fraction = std::uniform_real_distribution<double>(-2, 2)(random);
          const double x = std::ldexp(fraction, between(random, least_exponent, largest_exponent));
          store(s, v, p, v < vectors ? encode(format, x) : 0);
        }
      }
    }
  }

  void store(int s, std::int64_t v, std::int64_t p, std::uint64_t pattern) {
    panels.vector<float>(s, v)[p * panels.element_stride()] =
        static_cast<float>(decode(*panels.format, pattern));
    if (v >= packed.vectors) return;
    switch (packed.format->storage_bytes) {
      case 1: packed.vector<std::uint8_t>(s, v)[p] = static_cast<std::uint8_t>(pattern); break;
      case 2: packed.vector<std::uint16_t>(s, v)[p] = static_cast<std::uint16_t>(pattern); break;
      default: packed.vector<std::uint32_t>(s, v)[p] = static_cast<std::uint32_t>(pattern); break;
    }
  }

  Slices packed;
  Slices panels;
  std::vector<std::byte> packed_memory;
  std::vector<std::byte> panel_memory;
};

struct RandomSchedule {
  explicit RandomSchedule(Random& random) {
    schedule.slices_a = between(random, 1, 3);
    schedule.slices_b = between(random, 1, 3);
    schedule.groups = between(random, 1, 3);
    schedule.k_block = between(random, 0, 2) * between(random, 1, 70);
    schedule.k_step = between(random, 0, 1) * between(random, 1, 20);
    schedule.k_segment = between(random, 0, 1) * between(random, 1, 100);
    schedule.joint = between(random, 0, 3) == 0;
    schedule.rescale_exponent = -between(random, 0, 12);
    for (int g = 0; g < schedule.groups; ++g) schedule.group_exponents[g] = -between(random, 0, 30);
    for (int t = between(random, schedule.groups, 7); t > 0; --t) {
      terms.push_back({static_cast<std::int16_t>(between(random, 0, schedule.slices_a - 1)),
                       static_cast<std::int16_t>(between(random, 0, schedule.slices_b - 1)),
                       static_cast<std::int16_t>(between(random, 0, schedule.groups - 1)),
                       between(random, 0, 2) == 0});
    }
    schedule.terms = terms;
  }
  RandomSchedule(const RandomSchedule&) = delete;

  Schedule schedule;
  std::vector<Term> terms;
};

std::vector<float> reference(const Schedule& schedule, const BothSlices& a, const BothSlices& b) {
  const Engine& engine = *find_engine("reference");
  std::vector<float> sums(static_cast<std::size_t>(schedule.sums() * a.packed.vectors * b.packed.vectors));
  std::vector<std::byte> scratch(engine.host()->scratch_bytes(schedule, a.packed.format->id, a.packed.k, 1));
  const Accumulators target{reinterpret_cast<std::byte*>(sums.data()), a.packed.vectors, b.packed.vectors,
                            schedule.sums(), SumType::f32};
  engine.host()->multiply({&schedule, a.packed, b.packed, target, Accumulator::fp32, scratch.data(), 1});
  return sums;
}

std::vector<float> by(const FloatKernels& kernels, const Schedule& schedule, const BothSlices& a,
                      const BothSlices& b, int threads) {
  std::vector<float> sums(static_cast<std::size_t>(schedule.sums() * a.panels.vectors * b.panels.vectors),
                          NAN);
  std::vector<std::byte> scratch(static_cast<std::size_t>(threads) * floats_worker_bytes(schedule),
                                 std::byte{0xff});
  const Accumulators target{reinterpret_cast<std::byte*>(sums.data()), a.panels.vectors, b.panels.vectors,
                            schedule.sums(), SumType::f32};
  multiply_floats({&schedule, a.panels, b.panels, target, Accumulator::fp32, scratch.data(), threads},
                  kernels);
  return sums;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
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
    const std::vector<float> expected = reference(drawn.schedule, a, b);
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
    EXPECT_FALSE(
        same_bits(by(*kernels, make_schedule(backward), a, b, 1), reference(make_schedule(forward), a, b)));
  }
}

}  // namespace
}  // namespace kintsugi::core
