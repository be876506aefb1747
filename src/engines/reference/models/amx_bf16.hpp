// Model of Intel AMX TDPBF16PS.
#pragma once

#include <algorithm>

#include "engines/reference/models/sequential.hpp"

namespace kintsugi::core {

// One instruction multiplies 16 pairs of k. Subnormal operands and accumulators are flushed. The even and the
// odd products are summed by two chains of fma that start at +0. Then the two chains are added, and their sum
// to the accumulator. Every step rounds to nearest even and flushes. Source: Intel SDM, "TDPBF16PS". The
// model matches all 24,576 recorded results in tests/data/mma.
struct AmxBf16 {
  using Element = float;
  using Sum = float;

  static constexpr int block = accumulator_block(Accumulator::amx_bf16, FormatId::bf16);
  static constexpr double unit_roundoff = 0x1p-24;

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::amx_bf16, format); }

  static Element load(const Format& format, std::uint64_t stored_bits) {
    return load_bf16_flushed(format, stored_bits);
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    for (std::int64_t p = 0; p < n; p += block) {
      const std::int64_t end = std::min<std::int64_t>(p + block, n);
      float even = 0;
      float odd = 0;
      // A partial block needs no padding by zeros: a chain that starts at +0 is never -0, so zeros change
      // nothing.
      for (std::int64_t i = p; i < end; i += 2) {
        even = fma_flushed(a[i], b[i], even);
        if (i + 1 < end) odd = fma_flushed(a[i + 1], b[i + 1], odd);
      }
      sum = flush_subnormal(flush_subnormal(sum) + flush_subnormal(even + odd));
    }
    return sum;
  }
};

}  // namespace kintsugi::core
