// Random floating slices, in the storage of the reference engine and in panels, random schedules, and the
// sums of both.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "engines/engine.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core {

using Random = std::mt19937_64;

inline int between(Random& random, int min, int max) {
  return std::uniform_int_distribution<int>(min, max)(random);
}

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

inline std::vector<float> reference_sums(const Schedule& schedule, const BothSlices& a, const BothSlices& b,
                                         Accumulator accumulator) {
  const Engine& engine = *find_engine("reference");
  std::vector<float> sums(static_cast<std::size_t>(schedule.sums() * a.packed.vectors * b.packed.vectors));
  std::vector<std::byte> scratch(engine.host()->scratch_bytes(schedule, a.packed.format->id, a.packed.k, 1));
  const Accumulators target{reinterpret_cast<std::byte*>(sums.data()), a.packed.vectors, b.packed.vectors,
                            schedule.sums(), SumType::f32};
  engine.host()->multiply({&schedule, a.packed, b.packed, target, accumulator, scratch.data(), 1});
  return sums;
}

// `worker_bytes`: scratch memory of a thread. Sums and scratch memory begin with NaN.
template <class Multiply>
std::vector<float> sums_by(std::size_t worker_bytes, const Schedule& schedule, const BothSlices& a,
                           const BothSlices& b, Accumulator accumulator, int threads,
                           const Multiply& multiply) {
  std::vector<float> sums(static_cast<std::size_t>(schedule.sums() * a.panels.vectors * b.panels.vectors),
                          NAN);
  const std::size_t bytes = static_cast<std::size_t>(threads) * worker_bytes;
  const HostBuffer scratch({}, bytes);
  std::memset(scratch.pointer(), 0xff, bytes);
  const Accumulators target{reinterpret_cast<std::byte*>(sums.data()), a.panels.vectors, b.panels.vectors,
                            schedule.sums(), SumType::f32};
  multiply(Multiplication{&schedule, a.panels, b.panels, target, accumulator,
                          static_cast<std::byte*>(scratch.pointer()), threads});
  return sums;
}

inline bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

}  // namespace kintsugi::core
