// Bit-exact models of the additions in matrix units, for the reference engine.
//
// Every model has
//   Element, Sum                decoded operand, accumulator
//   load(format, stored_bits)   an operand from its storage pattern
//   run(a, b, n, sum)           sum + sum_p a[p] * b[p] in the unit's order; n is cut into blocks of the
//                               unit, and a partial last block is padded with zeros
//   supports(format)
//   block                       products that the unit adds at once
//   extra_bits (tensor cores) or unit_roundoff (all others)
//                               numbers of the a-priori bound: accumulation_error() in
//                                 schedule/accumulator.hpp
//
// Compile without contraction and without fast-math, and run in round-to-nearest with subnormals.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "formats/format.hpp"
#include "formats/formats.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

// Sequential accumulation: native fp32 and fp64, AVX-512 VDPBF16PS, and the sums of int8.

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

// Model of Intel AMX TDPBF16PS. One instruction multiplies 16 pairs of k. Subnormal operands and accumulators
// are flushed. The even and the odd products are summed by two chains of fma that start at +0. Then the two
// chains are added, and their sum to the accumulator. Every step rounds to nearest even and flushes. Source:
// Intel SDM, "TDPBF16PS". The model matches all 24,576 recorded results in tests/data/mma.
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
      for (std::int64_t i = p; i < end; i += 2) {
        even = fma_flushed(a[i], b[i], even);
        if (i + 1 < end) odd = fma_flushed(a[i + 1], b[i + 1], odd);
      }
      // Zeros that fill a partial block change nothing but a chain that was flushed to -0, which becomes +0.
      if (end < p + block) odd += 0.0F;
      if (end < p + block - 1) even += 0.0F;
      sum = flush_subnormal(flush_subnormal(sum) + flush_subnormal(even + odd));
    }
    return sum;
  }
};

// Model of AMD CDNA 2's MFMA of fp16 with sums in fp32: products are exact; four of them are added in pairs,
// and their sum to the accumulator. Every step rounds to nearest even. Subnormal operands, sums and
// accumulators are flushed: MIOpen's documentation, "MI200 matrix fused multiply-add (MFMA) behavior
// specifics". The order is that which P. Xie et al. derived on the device, "MMA-Sim: bit-accurate reference
// model of tensor cores and matrix cores", arXiv:2511.10909. Not checked against hardware by us.
struct Cdna2 {
  using Element = float;
  using Sum = float;

  static constexpr int block = accumulator_block(Accumulator::cdna2, FormatId::fp16);
  static constexpr double unit_roundoff = 0x1p-24;

  static constexpr bool supports(FormatId format) { return core::supports(Accumulator::cdna2, format); }

  static Element load(const Format& format, std::uint64_t stored_bits) {
    const double value = decode(format, stored_bits);
    return std::fabs(value) < smallest_normal ? 0.0F : static_cast<float>(value);
  }

  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum) {
    if (n > 0) sum = flush_subnormal(sum);
    for (std::int64_t p = 0; p < n; p += block) {
      float products[block] = {};
      for (std::int64_t i = 0; i < std::min<std::int64_t>(block, n - p); ++i)
        products[i] = a[p + i] * b[p + i];
      const float first = flush_subnormal(products[0] + products[1]);
      const float second = flush_subnormal(products[2] + products[3]);
      sum = flush_subnormal(sum + flush_subnormal(first + second));
    }
    return sum;
  }

 private:
  static constexpr double smallest_normal = 0x1p-14;  // of fp16
};

// Model of the additions in NVIDIA's tensor cores, which add a block of products and the accumulator at once,
// on one grid.

// Description of the format with this identity, for models that have the identity as a template argument.
template <FormatId Id>
inline constexpr const Format& format_of = *formats[static_cast<std::size_t>(Id)];

// A decoded operand: significand * 2^(exponent - fraction bits of the format). Its product with another
// operand takes one multiplication and one addition. A subnormal has the exponent of the smallest normal
// number and a significand below 2^fraction_bits. Zeros, infinities and NaN have exponents far outside every
// format's range. A zero therefore never sets the grid. An infinity or NaN always sets it, so the largest
// exponent of a block shows that a product is special, without a test of each product.
struct TensorCoreElement {
  static constexpr int zero_exponent = -4096;
  static constexpr int special_exponent = 8192;

  std::int16_t significand;  // signed; infinity: +1 or -1, NaN: 0
  std::int16_t exponent;
};

static_assert(TensorCoreUnit::no_min_alignment == TensorCoreElement::zero_exponent);

// Computes D = C + A B of one instruction, chained over any number of products. Products are exact. The
// accumulator and `Block` products are aligned to the largest of their exponents, where the exponent of a
// product is the sum of its factors' exponents, or to MinAlignment if all are below it. Each addend is
// truncated towards zero, ExtraBits below the last place of an FP32 significand with that exponent. The sum
// of the addends is exact; it is truncated to FP32, subnormals kept. The last bits of subnormal sums depend
// on MinAlignment, since any accumulator but zero has an exponent of at least -126; the a-priori bound covers
// it (schedule/accumulator.cpp).
//
// Four rules for special results were measured (tests/data/mma/*_corners_*.bin); the papers of
// schedule/tensor_cores.def state the first two as well:
//   Zero addends do not set the grid.
//   Results beyond FLT_MAX are infinite.
//   Every zero result is +0: sums of -0, exact cancellation, negative results that underflow.
//   NaN is 0x7fffffff, whatever its cause.
//
// Block, ExtraBits and MinAlignment come from schedule/tensor_cores.def.
template <FormatId Id, int Block, int ExtraBits, int MinAlignment = TensorCoreUnit::no_min_alignment>
struct TensorCore {
  using Element = TensorCoreElement;
  using Sum = float;

  static constexpr int block = Block;           // products per alignment and per truncation to fp32
  static constexpr int extra_bits = ExtraBits;  // each addend loses less than 2^(emax - 23 - extra_bits)

  static constexpr bool supports(FormatId format) { return format == Id; }

  static Element load(const Format& format, std::uint64_t stored_bits);
  static Sum run(const Element* a, const Element* b, std::int64_t n, Sum sum);

 private:
  static constexpr int fraction_bits = format_of<Id>.fraction_bits();
  // The integer of a product has 2 * fraction_bits fraction bits, and the grid has 23 + ExtraBits.
  static constexpr int product_shift = 23 + ExtraBits - 2 * fraction_bits;
  // Bound of the exponents of finite addends: those of products are below 2 * 128.
  static constexpr int largest_finite_exponent = 1024;
  static_assert(product_shift >= 0, "products have no bits below the grid of their own exponent");
  static_assert(2 * (fraction_bits + 1) + product_shift <= 30, "aligned products are int32");

  struct Addends {
    std::int32_t significand[Block + 1];
    std::int32_t exponent[Block + 1];
    std::int32_t largest_exponent;
  };

  static Addends multiply(const Element* a, const Element* b, float sum);
  static float add(const Addends& addends);
  static float add_special(const Addends& addends);
  static float to_float(std::int64_t value, int exponent);
};

// The model with the numbers of one accumulator.
template <FormatId Id, Accumulator Unit>
using ModelOf = TensorCore<Id, accumulator_block(Unit, Id), accumulator_extra_bits(Unit),
                           find_tensor_core(Unit)->min_alignment>;

template <FormatId Id, int Block, int ExtraBits, int MinAlignment>
TensorCoreElement TensorCore<Id, Block, ExtraBits, MinAlignment>::load(const Format& format,
                                                                       std::uint64_t stored_bits) {
  const std::uint64_t pattern = stored_bits >> format.storage_shift;
  const std::uint64_t all_exponent_bits = (1ULL << format.exponent_bits) - 1;
  const auto fraction = static_cast<int>(pattern & ((1ULL << fraction_bits) - 1));
  const auto field = static_cast<int>((pattern >> fraction_bits) & all_exponent_bits);
  const bool negative = ((pattern >> (format.exponent_bits + fraction_bits)) & 1) != 0;
  int significand = fraction;
  int exponent = format.min_exponent;
  if (field == static_cast<int>(all_exponent_bits)) {
    significand = fraction == 0 ? 1 : 0;
    exponent = Element::special_exponent;
  } else if (field > 0) {
    significand |= 1 << fraction_bits;
    exponent = field - format.bias();
  } else if (fraction == 0) {
    exponent = Element::zero_exponent;
  }
  if (negative) significand = -significand;
  return {static_cast<std::int16_t>(significand), static_cast<std::int16_t>(exponent)};
}

template <FormatId Id, int Block, int ExtraBits, int MinAlignment>
float TensorCore<Id, Block, ExtraBits, MinAlignment>::run(const Element* a, const Element* b, std::int64_t n,
                                                          float sum) {
  std::int64_t p = 0;
  for (; p + Block <= n; p += Block) sum = add(multiply(a + p, b + p, sum));
  if (p == n) return sum;
  Element last_a[Block];
  Element last_b[Block];
  for (std::int64_t i = 0; i < Block; ++i) {
    const bool inside = p + i < n;
    last_a[i] = inside ? a[p + i] : Element{0, Element::zero_exponent};
    last_b[i] = inside ? b[p + i] : Element{0, Element::zero_exponent};
  }
  return add(multiply(last_a, last_b, sum));
}

// Returns the exact products and, as the last addend, the accumulator. The unit of a significand is the grid
// of the addend's own exponent.
template <FormatId Id, int Block, int ExtraBits, int MinAlignment>
auto TensorCore<Id, Block, ExtraBits, MinAlignment>::multiply(const Element* a, const Element* b, float sum)
    -> Addends {
  Addends addends;
  const auto bits = std::bit_cast<std::uint32_t>(sum);
  const int field = static_cast<int>(bits >> 23) & 0xff;
  const auto fraction = static_cast<std::int32_t>(bits & 0x7fffff);
  std::int32_t significand = (field > 0 ? fraction | 0x800000 : fraction) << ExtraBits;
  std::int32_t exponent = std::max(field, 1) - 127;
  if (field == 0xff) {
    significand = fraction == 0 ? 1 : 0;
    exponent = Element::special_exponent;
  } else if (significand == 0) {
    exponent = Element::zero_exponent;
  }
  addends.significand[Block] = (bits >> 31) != 0 ? -significand : significand;
  addends.exponent[Block] = exponent;
  std::int32_t largest = std::max(exponent, MinAlignment);
  for (int p = 0; p < Block; ++p) {
    addends.significand[p] = (std::int32_t{a[p].significand} * b[p].significand) * (1 << product_shift);
    addends.exponent[p] = std::int32_t{a[p].exponent} + b[p].exponent;
    largest = std::max(largest, addends.exponent[p]);
  }
  addends.largest_exponent = largest;
  return addends;
}

template <FormatId Id, int Block, int ExtraBits, int MinAlignment>
float TensorCore<Id, Block, ExtraBits, MinAlignment>::add(const Addends& addends) {
  const std::int32_t largest = addends.largest_exponent;
  if (largest > largest_finite_exponent) [[unlikely]]
    return add_special(addends);
  std::int64_t total = 0;
  for (int p = 0; p <= Block; ++p) {
    const std::int32_t significand = addends.significand[p];
    const std::int32_t sign = significand >> 31;
    const std::int32_t distance = std::min(largest - addends.exponent[p], 31);
    // The magnitude is truncated: an arithmetic shift of a negative number would round towards minus
    // infinity.
    total += ((((significand ^ sign) - sign) >> distance) ^ sign) - sign;
  }
  return to_float(total, largest - 23 - ExtraBits);
}

// Adds as IEEE 754 does. The result is NaN if an addend is NaN or if there are infinities of both signs. A
// NaN has significand 0 here, and so has infinity times zero.
template <FormatId Id, int Block, int ExtraBits, int MinAlignment>
float TensorCore<Id, Block, ExtraBits, MinAlignment>::add_special(const Addends& addends) {
  bool positive = false;
  bool negative = false;
  bool nan = false;
  for (int p = 0; p <= Block; ++p) {
    if (addends.exponent[p] <= largest_finite_exponent) continue;
    positive |= addends.significand[p] > 0;
    negative |= addends.significand[p] < 0;
    nan |= addends.significand[p] == 0;
  }
  if (nan || (positive && negative)) return std::bit_cast<float>(0x7fffffffU);
  return std::bit_cast<float>(positive ? 0x7f800000U : 0xff800000U);
}

// Returns value * 2^exponent truncated to fp32.
template <FormatId Id, int Block, int ExtraBits, int MinAlignment>
float TensorCore<Id, Block, ExtraBits, MinAlignment>::to_float(std::int64_t value, int exponent) {
  if (value == 0) return 0.0F;
  const std::uint32_t sign = value < 0 ? 0x80000000U : 0;
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  const int leading = 63 - std::countl_zero(magnitude);  // position of the leading bit in `magnitude`
  // Position of the result's last bit: 23 below the leading one, but not below 2^-149.
  const int drop = std::max(leading - 23, -149 - exponent);
  const std::uint64_t kept = drop >= 0 ? magnitude >> std::min(drop, 63) : magnitude << -drop;
  if (kept == 0) return 0.0F;
  const int field = std::max(leading + exponent, -126) + 127;
  if (field >= 0xff) return std::bit_cast<float>(sign | 0x7f800000U);
  // The implicit bit of a normal number adds 1 to the exponent field; so the field is entered 1 too low. A
  // subnormal has no implicit bit.
  const std::uint32_t field_below = static_cast<std::uint32_t>(field - 1) << 23;
  return std::bit_cast<float>(sign | (field_below + static_cast<std::uint32_t>(kept)));
}

// Calls visitor.template operator()<Model>() with the model of this accumulator and format, and returns true.
// Returns false if the unit does not multiply the format. No other code maps names to models. cuBLAS gets the
// model of fused multiply-adds in FP32: its kernels are unknown, and this is one of the units that it may
// use.
template <FormatId Id, class Visitor>
bool visit_model(Accumulator accumulator, Visitor&& visitor) {
  if (!supports(accumulator, Id)) return false;
  constexpr bool tensor_core_format = Id == FormatId::fp16 || Id == FormatId::bf16 || Id == FormatId::tf32;
  if constexpr (tensor_core_format) {
    switch (accumulator) {
#define KINTSUGI_TENSOR_CORE(unit, ...) \
  case Accumulator::unit:               \
    return visitor.template operator()<ModelOf<Id, Accumulator::unit>>(), true;
#include "schedule/tensor_cores.def"
#undef KINTSUGI_TENSOR_CORE
      default: break;
    }
  }
  if constexpr (Id == FormatId::bf16) {
    if (accumulator == Accumulator::amx_bf16) return visitor.template operator()<AmxBf16>(), true;
    if (accumulator == Accumulator::avx512_bf16) return visitor.template operator()<Avx512Bf16>(), true;
  }
  if constexpr (Id == FormatId::fp16) {
    if (accumulator == Accumulator::cdna2) return visitor.template operator()<Cdna2>(), true;
  }
  if constexpr (Id == FormatId::int8) {
    return visitor.template operator()<Int32>(), true;
  } else if constexpr (Id == FormatId::fp64) {
    return visitor.template operator()<Fp64Nearest>(), true;
  } else if constexpr (Id == FormatId::int52) {
    return visitor.template operator()<Int128>(), true;
  } else {
    return visitor.template operator()<Fp32Nearest>(), true;
  }
}

}  // namespace kintsugi::core
