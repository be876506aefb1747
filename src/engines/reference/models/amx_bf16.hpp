// Model of Intel AMX TDPBF16PS.
#pragma once

#include <algorithm>

#include "engines/reference/models/sequential.hpp"

namespace kintsugi::core {

// One instruction multiplies 16 pairs of k. Subnormals of operands and accumulator are flushed; the even and
// the odd products enter two fma chains that start at +0; the chains are added, then the accumulator; every
// step rounds to nearest even and flushes. Intel SDM, "TDPBF16PS"; matches all 24,576 recorded results in
// tests/data/mma.
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
      // Zeros that would pad the block change nothing: a chain that starts at +0 is never -0.
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
