// How engines accumulate: the names, what each one does to a sum, and an a-priori bound of its error.
// The bit-exact models are in engines/reference/models.hpp and take their numbers from here; the
// planner and every engine share this table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/format.hpp"

namespace kintsugi::core {

enum class Accumulator : std::uint8_t {
  fp32,         // sequential fused multiply-add in fp32, nearest even; partial sums are added in fp64 outside
  v100,         // NVIDIA V100 tensor core (from the literature)
  a100,         // NVIDIA A100 tensor core (from the literature)
  h200,         // NVIDIA H200 wgmma (checked against recorded results)
  h200_mma,     // NVIDIA H200, warp matrix API (checked); differs from wgmma for tf32 alone
  amx_bf16,     // Intel AMX TDPBF16PS (checked)
  avx512_bf16,  // AVX-512 VDPBF16PS, Intel and AMD (checked)
  int32,        // sums modulo 2^32
  int128,       // sums modulo 2^128
  fp64,         // fused multiply-add in fp64, nearest even, in any order
  cublas,  // cuBLAS from the A100 on: runs in whatever kernel it takes, each added to what is there in fp32
};

inline constexpr std::array accumulators{
    Accumulator::fp32,     Accumulator::v100,     Accumulator::a100,        Accumulator::h200,
    Accumulator::h200_mma, Accumulator::amx_bf16, Accumulator::avx512_bf16, Accumulator::int32,
    Accumulator::int128,   Accumulator::fp64,     Accumulator::cublas,
};

constexpr const char* accumulator_name(Accumulator accumulator) {
  constexpr std::array names{"fp32",        "v100",  "a100",   "h200", "h200-mma", "amx-bf16",
                             "avx512-bf16", "int32", "int128", "fp64", "cublas"};
  static_assert(names.size() == accumulators.size());
  return names[static_cast<std::size_t>(accumulator)];
}

constexpr std::optional<Accumulator> find_accumulator(std::string_view name) {
  for (const Accumulator accumulator : accumulators) {
    if (name == accumulator_name(accumulator)) return accumulator;
  }
  return std::nullopt;
}

// "fp32, v100, ...": for messages about unknown names.
std::string accumulator_names();

// Whether the engine multiplies operands of that format into this accumulator.
constexpr bool supports(Accumulator accumulator, FormatId format) {
  using enum FormatId;
  switch (accumulator) {
    case Accumulator::fp32: return format != int8 && format != int52 && format != fp64;
    case Accumulator::v100: return format == fp16;
    case Accumulator::a100:
    case Accumulator::h200:
    case Accumulator::h200_mma:
    case Accumulator::cublas: return format == fp16 || format == bf16 || format == tf32;
    case Accumulator::amx_bf16:
    case Accumulator::avx512_bf16: return format == bf16;
    case Accumulator::int32: return format == int8;
    case Accumulator::int128: return format == int52;
    case Accumulator::fp64: return format == fp64;
  }
  return false;
}

// Adds a whole block of products at once, aligned and truncated.
constexpr bool is_tensor_core(Accumulator accumulator) {
  return accumulator == Accumulator::v100 || accumulator == Accumulator::a100 ||
         accumulator == Accumulator::h200 || accumulator == Accumulator::h200_mma;
}

// Products that meet the accumulator in one step of the hardware. A run of n products is cut into such
// blocks from its start; zeros that fill the last one change nothing.
//
// tf32 on the H200: wgmma and mma.sync.m16n8k8 add 8 products at once (60,000 probes of the latter, no
// mismatch); the warp matrix API's m16n16k8 is two blocks of 4, one after the other, as two m16n8k4
// would be. h200_mma is the latter.
constexpr int accumulator_block(Accumulator accumulator, FormatId format) {
  const bool tf32_operands = format == FormatId::tf32;
  switch (accumulator) {
    case Accumulator::v100: return 4;
    case Accumulator::a100: return tf32_operands ? 4 : 8;
    case Accumulator::h200: return tf32_operands ? 8 : 16;
    case Accumulator::h200_mma: return tf32_operands ? 4 : 16;
    case Accumulator::amx_bf16: return 32;
    case Accumulator::avx512_bf16: return 2;
    case Accumulator::fp32:
    case Accumulator::int32:
    case Accumulator::int128:
    case Accumulator::fp64:
    case Accumulator::cublas: break;
  }
  return 1;
}

// Whether partial sums that leave the accumulator are added in fp64 and rounded to fp32 once, after the last
// of them; else every addition outside is rounded to fp32. In fp32 the error of sums of one sign grows with
// the number of k-blocks, to 2.6 times that of OpenBLAS at k = 2^18 in blocks of 64, and a CPU adds in fp64
// at no cost beside the products of a block.
constexpr bool adds_outside_in_fp64(Accumulator accumulator) { return accumulator == Accumulator::fp32; }

// Bits that a tensor core keeps of each addend below the last place of the largest one's fp32
// significand; 0 for the other accumulators.
constexpr int accumulator_extra_bits(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::a100: return 1;
    case Accumulator::h200:
    case Accumulator::h200_mma: return 2;
    default: return 0;
  }
}

// The number of products up to which int8 x int8 cannot wrap from a zero sum, with -128 allowed:
// floor((2^31 - 1) / 2^14).
inline constexpr std::int64_t int32_safe_products = 131071;

// The same of 52-bit words with -2^51 allowed: floor((2^127 - 1) / 2^102).
inline constexpr std::int64_t int128_safe_products = 33554431;

constexpr bool is_integer(Accumulator accumulator) {
  return accumulator == Accumulator::int32 || accumulator == Accumulator::int128;
}

// Products of integers up to which the accumulator cannot wrap from a zero sum.
constexpr std::int64_t safe_products(Accumulator accumulator) {
  return accumulator == Accumulator::int128 ? int128_safe_products : int32_safe_products;
}

// A-priori bound of one run of n products into one accumulator, for finite operands and a sum that
// does not overflow:
//
//   |computed - (sum_0 + sum_p a_p b_p)| <= accumulation_error  * (|sum_0| + sum_p |a_p b_p|)
//                                          + accumulation_floor
//
// accumulation_error is rigorous, second-order terms included (derivation in accumulator.cpp). Integers:
// 0 up to safe_products, infinity beyond, for sum_0 = 0; a caller that starts elsewhere counts
// the products already in the sum. Combinations that are not supported give infinity.
double accumulation_error(Accumulator accumulator, FormatId format, std::int64_t n);

// The absolute part: subnormal sums and subnormal operands (flushed by the bf16 units of CPUs; given
// the exponent of the smallest normal number, and so too coarse a grid, by tensor cores). It is no less
// than what any operands cause whose magnitudes are at most largest_operand. Far below every real result
// when operands are scaled, but not always: fp16 with a subnormal factor loses as much as 2^-39 of
// the other factor a product on the H200.
double accumulation_floor(Accumulator accumulator, FormatId format, std::int64_t n, double largest_operand);

}  // namespace kintsugi::core
