// Not a test: rates of int8 products on this machine, for lab/results/log.
//   build/tests/int8_rate [m = n = k] [threads]
// Rates are in 10^9 operations (2 per product of elements) per second of processor time, best of seven, so
// that a busy machine counts less.
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/memory.hpp"
#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "tests/support/processor_time.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

template <class Work>
double best_rate(double operations, const Work& work) {
  double best = 0;
  for (int run = 0; run < 7; ++run) {
    const double start = processor_seconds();
    work();
    best = std::max(best, operations / (processor_seconds() - start) * 1e-9);
  }
  return best;
}

// VPDPBUSD on registers alone, 16 independent sums.
__attribute__((target("avx512f"))) void register_resident(long rounds) {
  __m512i sums[16] = {};
  const __m512i factor = _mm512_set1_epi8(1);
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (__m512i& sum : sums) asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(factor));
  }
}

// Eight tiles of 16 rows of 64 bytes, as LDTILECFG reads them.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t reserved[15] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes tile_shapes;

// TDPBSSD on registers alone, four independent tiles of sums.
__attribute__((target("amx-tile,amx-int8"))) void tiles_resident(long rounds) {
  _tile_loadconfig(&tile_shapes);
  for (long round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 6, 4);
    _tile_dpbssd(1, 6, 5);
    _tile_dpbssd(2, 7, 4);
    _tile_dpbssd(3, 7, 5);
  }
  _tile_release();
}

void print_int8(std::int64_t size, int threads) {
  const Schedule schedule = make_schedule(single_product);
  Slices slices = make_slices(int8, SliceStorage::packed, 1, size, size);
  const HostBuffer memory(Allocator{}, slices.bytes());  // aligned, as a workspace is
  slices.data = static_cast<std::byte*>(memory.pointer());
  for (std::size_t e = 0; e < memory.bytes(); ++e)
    slices.data[e] = static_cast<std::byte>(measure::mix_bits(e));
  Accumulators sums = make_accumulators(SumType::i64, size, size, 1);
  const HostBuffer sums_memory(Allocator{}, sums.bytes());
  sums.data = static_cast<std::byte*>(sums_memory.pointer());
  const double operations = 2.0 * static_cast<double>(size) * static_cast<double>(size * size);
  for (const Int8Kernels* kernels : int8_families()) {
    const HostBuffer scratch(Allocator{}, static_cast<std::size_t>(threads) * int8_worker_bytes(*kernels));
    const Multiplication task{
        &schedule, slices, slices, sums, Accumulator::int32, static_cast<std::byte*>(scratch.pointer()),
        threads};
    fmt::print("int8 {}: {:.0f} GOP/s\n", kernels->name,
               best_rate(operations, [&] { multiply_int8(task, *kernels); }));
  }
  std::vector<float> x(static_cast<std::size_t>(size * size), 0.5F), z(x.size());
  const MatrixView<const float> view{x.data(), size, size, 1, size};
  const NativeProduct<float> native{view, view, {z.data(), size, size, 1, size}, 1, 0, threads};
  fmt::print("native fp32: {:.0f} GOP/s\n",
             best_rate(operations, [&] { find_engine("cpu")->host()->native(native); }));
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  using namespace kintsugi::core;
  if (__builtin_cpu_supports("avx512vnni")) {
    constexpr long rounds = 20'000'000;
    fmt::print("VPDPBUSD on registers: {:.0f} GOP/s\n",
               best_rate(16.0 * 128 * rounds, [] { register_resident(rounds); }));
  }
  if (int8_families().front() == &int8_amx) {
    constexpr long rounds = 20'000'000;
    fmt::print("TDPBSSD on registers: {:.0f} GOP/s\n",
               best_rate(4.0 * 2 * 16 * 16 * 64 * rounds, [] { tiles_resident(rounds); }));
  }
  print_int8(count > 1 ? std::atol(words[1]) : 2048, count > 2 ? std::atoi(words[2]) : 1);
}
