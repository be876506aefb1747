// Models of sequential accumulation: native fp32 and fp64, AVX-512 VDPBF16PS, and the sums of int8.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "formats/format.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

// Computes sum = fma(a[p], b[p], sum) in FP32: the product is exact, the addition is rounded to nearest even.
struct Fp32Nearest {
  using Element = float;
  using Sum = float;

  static constexpr int block = 1;
  static constexpr double unit_roundoff = 0x1p-24;  // relative error of each addition

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::fp32, format); }

  static Element load(const Format& format, std::uint64_t stored_bits) {
    return static_cast<float>(decode(format, stored_bits));
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    for (std::int64_t p = 0; p < n; ++p) sum = std::fma(a[p], b[p], sum);
    return sum;
  }
};

// Fp32Nearest in FP64.
struct Fp64Nearest {
  using Element = double;
  using Sum = double;

  static constexpr int block = 1;
  static constexpr double unit_roundoff = 0x1p-53;

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::fp64, format); }

  static Element load(const Format& format, std::uint64_t stored_bits) { return decode(format, stored_bits); }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    for (std::int64_t p = 0; p < n; ++p) sum = std::fma(a[p], b[p], sum);
    return sum;
  }
};

// Returns zero of the same sign for a subnormal. The bf16 units of CPUs flush operands and results in this
// way (denormals-are-zero and flush-to-zero), whatever MXCSR says: Intel SDM, TDPBF16PS and VDPBF16PS.
inline float flush_subnormal(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : value;
}

// Returns the result of an fma, flushed. A unit may decide by the rounded or by the unrounded value whether a
// result near the smallest normal number is flushed; the recorded results do not show which. This model uses
// the rounded value.
inline float fma_flushed(float a, float b, float sum) { return flush_subnormal(std::fma(a, b, sum)); }

// Decodes and flushes a bf16 operand, for both units of CPUs.
inline float load_bf16_flushed(const Format& format, std::uint64_t stored_bits) {
  return flush_subnormal(static_cast<float>(decode(format, stored_bits)));
}

// Model of AVX-512 VDPBF16PS (Intel and AMD Zen 5). The odd product of each pair is added to the accumulator
// by fma, then the even one; each result is rounded to nearest even and flushed. An odd n is padded with a
// zero product. The model matches every record of both vendors in tests/data/mma.
struct Avx512Bf16 {
  using Element = float;
  using Sum = float;

  static constexpr int block = accumulator_block(Accumulator::avx512_bf16, FormatId::bf16);
  static constexpr double unit_roundoff = 0x1p-24;

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::avx512_bf16, format); }

  static Element load(const Format& format, std::uint64_t stored_bits) {
    return load_bf16_flushed(format, stored_bits);
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    if (n > 0) sum = flush_subnormal(sum);
    for (std::int64_t p = 0; p < n; p += block) {
      const bool has_odd = p + 1 < n;
      sum = fma_flushed(has_odd ? a[p + 1] : 0.0F, has_odd ? b[p + 1] : 0.0F, sum);
      sum = fma_flushed(a[p], b[p], sum);
    }
    return sum;
  }
};

// Model of int8 units without saturation, of GPUs and CPUs: products are exact, and sums wrap modulo 2^32.
// The arithmetic is unsigned, since signed overflow is undefined in C++.
struct Int32 {
  using Element = std::int32_t;
  using Sum = std::int32_t;

  static constexpr int block = 1;
  static constexpr double unit_roundoff = 0;

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::int32, format); }

  static Element load(const Format&, std::uint64_t stored_bits) {
    return static_cast<std::int8_t>(static_cast<std::uint8_t>(stored_bits));
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    auto total = static_cast<std::uint32_t>(sum);
    for (std::int64_t p = 0; p < n; ++p) total += static_cast<std::uint32_t>(a[p] * b[p]);
    return static_cast<std::int32_t>(total);
  }
};

// Model of 52-bit words: products are exact in 128 bits, and sums wrap modulo 2^128.
struct Int128 {
  using Element = std::int64_t;
  __extension__ using Sum = __int128;
  __extension__ using Unsigned = unsigned __int128;

  static constexpr int block = 1;
  static constexpr double unit_roundoff = 0;

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::int128, format); }

  static Element load(const Format&, std::uint64_t stored_bits) {
    return static_cast<std::int64_t>(stored_bits);
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    auto total = static_cast<Unsigned>(sum);
    for (std::int64_t p = 0; p < n; ++p) total += static_cast<Unsigned>(Sum{a[p]} * b[p]);
    return static_cast<Sum>(total);
  }
};

}  // namespace kintsugi::core
