// Models of sequential accumulation: native fp32 and fp64, AVX-512 VDPBF16PS, and the sums of int8.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "formats/format.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

// Computes sum = fma(a[p], b[p], sum) in fp32, rounded to nearest even: the exact product, and one rounded
// addition.
struct Fp32Nearest {
  using Element = float;
  using Sum = float;

  static constexpr int block = 1;
  static constexpr double unit_roundoff = 0x1p-24;  // error of the addition of each product

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::fp32, format); }

  static Element load(const Format& format, std::uint64_t stored_bits) {
    return static_cast<float>(decode(format, stored_bits));
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    for (std::int64_t p = 0; p < n; ++p) sum = std::fma(a[p], b[p], sum);
    return sum;
  }
};

// Like Fp32Nearest, in fp64.
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

// Returns zero of the same sign for a subnormal, for operands and for results (denormals-are-zero and
// flush-to-zero), as the bf16 units of CPUs do for any MXCSR: Intel SDM, TDPBF16PS and VDPBF16PS.
inline float flush_subnormal(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : value;
}

// Flushes the result of an fma. The decision at the smallest normal number may depend on the unrounded or on
// the rounded value; the recorded results do not distinguish the two. This model uses the rounded one.
inline float fma_flushed(float a, float b, float sum) { return flush_subnormal(std::fma(a, b, sum)); }

// Decodes a bf16 operand of either CPU unit, flushed.
inline float load_bf16_flushed(const Format& format, std::uint64_t stored_bits) {
  return flush_subnormal(static_cast<float>(decode(format, stored_bits)));
}

// Model of AVX-512 VDPBF16PS (Intel and AMD Zen 5): the odd product of each pair is added to the accumulator
// by fma, then the even one, each rounded to nearest even and flushed. Matches every record of both vendors
// in tests/data/mma. An odd n is padded with a zero product.
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

// Model of int8: products are exact and sums wrap modulo 2^32, as in the integer units of GPUs and CPUs
// without saturation. The arithmetic is unsigned, since signed overflow is undefined in C++.
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
