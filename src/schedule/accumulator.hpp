// Accumulators of the engines: their names, how each adds products, and an a-priori bound of its error. The
// bit-exact models in engines/reference/models.hpp take their numbers from here; the planner and every engine
// use this table, too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/format.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core {

// GCC 12 warns of enumerators that have names of formats, although the enumeration is scoped.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Accumulator : std::uint8_t {
  fp32,  // sequential fused multiply-add in fp32, nearest even; partial sums are added in fp64 outside
#define KINTSUGI_TENSOR_CORE(accumulator, ...) accumulator,
#include "schedule/tensor_cores.def"
#undef KINTSUGI_TENSOR_CORE
  amx_bf16,     // Intel AMX TDPBF16PS (checked)
  avx512_bf16,  // AVX-512 VDPBF16PS, Intel and AMD (checked)
  cdna2,        // AMD CDNA 2, MFMA of fp16, which flushes subnormals (model of the literature, not checked)
  int32,        // sums modulo 2^32
  int128,       // sums modulo 2^128
  fp64,         // fused multiply-add in fp64, nearest even, in any order
  cublas,       // cuBLAS on GPUs with bf16: each run in a kernel that cuBLAS selects, then added in fp32
};
#pragma GCC diagnostic pop

// A matrix unit of tensor_cores.def.
struct TensorCoreUnit {
  enum Formats : std::uint8_t { fp16_alone, fp16_bf16_tf32 };
  static constexpr int no_min_alignment = -4096;  // below the exponents of all products

  Accumulator accumulator;
  const char* name;
  int products;
  int tf32_products;
  int extra_bits;
  int min_alignment;
  Formats formats;

  static constexpr auto all() {
    return std::array{
#define KINTSUGI_TENSOR_CORE(accumulator, ...) TensorCoreUnit{Accumulator::accumulator, __VA_ARGS__},
#include "schedule/tensor_cores.def"
#undef KINTSUGI_TENSOR_CORE
    };
  }
};
inline constexpr auto tensor_cores = TensorCoreUnit::all();

// The matrix unit of an accumulator; none if the accumulator is none of a tensor core.
constexpr std::optional<TensorCoreUnit> find_tensor_core(Accumulator accumulator) {
  for (const TensorCoreUnit& unit : tensor_cores) {
    if (unit.accumulator == accumulator) return unit;
  }
  return std::nullopt;
}

inline constexpr std::array accumulators{
    Accumulator::fp32,
#define KINTSUGI_TENSOR_CORE(accumulator, ...) Accumulator::accumulator,
#include "schedule/tensor_cores.def"
#undef KINTSUGI_TENSOR_CORE
    Accumulator::amx_bf16, Accumulator::avx512_bf16, Accumulator::cdna2,  Accumulator::int32,
    Accumulator::int128,   Accumulator::fp64,        Accumulator::cublas,
};

constexpr const char* accumulator_name(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::fp32: return "fp32";
    case Accumulator::amx_bf16: return "amx-bf16";
    case Accumulator::avx512_bf16: return "avx512-bf16";
    case Accumulator::cdna2: return "cdna2";
    case Accumulator::int32: return "int32";
    case Accumulator::int128: return "int128";
    case Accumulator::fp64: return "fp64";
    case Accumulator::cublas: return "cublas";
    default: return find_tensor_core(accumulator)->name;
  }
}

constexpr std::optional<Accumulator> find_accumulator(std::string_view name) {
  for (const Accumulator accumulator : accumulators) {
    if (name == accumulator_name(accumulator)) return accumulator;
  }
  return std::nullopt;
}

// "fp32, amx-bf16, ...": for messages about unknown names.
std::string accumulator_names();

// True if the engine multiplies operands of that format into this accumulator.
constexpr bool supports(Accumulator accumulator, FormatId format) {
  using enum FormatId;
  switch (accumulator) {
    case Accumulator::fp32: return format != int8 && format != int52 && format != fp64;
    case Accumulator::cublas: return format == fp16 || format == bf16 || format == tf32;
    case Accumulator::amx_bf16:
    case Accumulator::avx512_bf16: return format == bf16;
    case Accumulator::cdna2: return format == fp16;
    case Accumulator::int32: return format == int8;
    case Accumulator::int128: return format == int52;
    case Accumulator::fp64: return format == fp64;
    default: break;
  }
  const TensorCoreUnit unit = *find_tensor_core(accumulator);
  return format == fp16 ||
         (unit.formats == TensorCoreUnit::fp16_bf16_tf32 && (format == bf16 || format == tf32));
}

// True if the unit adds a whole block of products at once, aligned to the largest exponent and truncated.
constexpr bool is_tensor_core(Accumulator accumulator) { return find_tensor_core(accumulator).has_value(); }

// Products that one step of the hardware adds to the accumulator. A run of n products is cut into such blocks
// from its start; zeros that fill the last block change nothing.
constexpr int accumulator_block(Accumulator accumulator, FormatId format) {
  if (accumulator == Accumulator::amx_bf16) return 32;
  if (accumulator == Accumulator::avx512_bf16) return 2;
  if (accumulator == Accumulator::cdna2) return 4;
  const std::optional<TensorCoreUnit> unit = find_tensor_core(accumulator);
  if (!unit) return 1;
  return format == FormatId::tf32 ? unit->tf32_products : unit->products;
}

// True if the unit takes subnormal factors and sums for zero.
constexpr bool flushes_subnormals(Accumulator accumulator) {
  return accumulator == Accumulator::amx_bf16 || accumulator == Accumulator::avx512_bf16 ||
         accumulator == Accumulator::cdna2;
}

// True if partial sums are added outside the accumulator in fp64, and the whole sum is rounded to fp32 once.
// False if every addition outside is rounded to fp32. In fp32 the error of sums of one sign grows with the
// number of k-blocks: at k = 2^18 in blocks of 64 it was 2.6 times the error of OpenBLAS. On a CPU, additions
// in fp64 cost nothing measurable beside a block's products.
constexpr bool adds_outside_in_fp64(Accumulator accumulator) { return accumulator == Accumulator::fp32; }

// Bits that a tensor core keeps of each addend below the last place of the largest addend's fp32 significand;
// 0 for other accumulators.
constexpr int accumulator_extra_bits(Accumulator accumulator) {
  const std::optional<TensorCoreUnit> unit = find_tensor_core(accumulator);
  return unit ? unit->extra_bits : 0;
}

// True for a tensor core that cuBLAS may use.
constexpr bool is_vendor_unit(const TensorCoreUnit& unit) {
  return unit.formats == TensorCoreUnit::fp16_bf16_tf32;
}

// The tensor core of all that cuBLAS may use that keeps the fewest bits, and so loses most by underflow.
constexpr Accumulator coarsest_vendor_unit() {
  std::optional<TensorCoreUnit> coarsest;
  for (const TensorCoreUnit& unit : tensor_cores) {
    if (is_vendor_unit(unit) && (!coarsest || unit.extra_bits < coarsest->extra_bits)) coarsest = unit;
  }
  return coarsest->accumulator;
}

// Number of products of int8 values, -128 included, whose sum from zero cannot wrap in int32:
// floor((2^31 - 1) / 2^14).
inline constexpr std::int64_t int32_safe_products = 131071;

// Number of products of 52-bit words, -2^51 included, whose sum from zero cannot wrap in 128 bits:
// floor((2^127 - 1) / 2^102).
inline constexpr std::int64_t int128_safe_products = 33554431;

constexpr bool is_integer(Accumulator accumulator) {
  return accumulator == Accumulator::int32 || accumulator == Accumulator::int128;
}

// Number of products of integers whose sum from zero cannot wrap in the accumulator.
constexpr std::int64_t safe_products(Accumulator accumulator) {
  return accumulator == Accumulator::int128 ? int128_safe_products : int32_safe_products;
}

// A-priori bound of the error of one run of n products into one accumulator, for finite operands and a sum
// that does not overflow:
//
//   |computed - (sum_0 + sum_p a_p b_p)| <= accumulation_error  * (|sum_0| + sum_p |a_p b_p|)
//                                          + accumulation_floor
//
// accumulation_error is rigorous and includes second-order terms (derivation in accumulator.cpp). For
// integers and sum_0 = 0, it is 0 if n is at most safe_products, and infinity otherwise. For another sum_0,
// n must include the products already in the sum. Combinations that are not supported give infinity.
double accumulation_error(Accumulator accumulator, FormatId format, std::int64_t n);

// Returns the absolute part of the bound, for subnormal sums and subnormal operands. CPUs' bf16 units and
// CDNA 2's fp16 unit flush subnormal numbers to zero. Tensor cores align subnormal numbers as if they had the
// exponent of the smallest normal number, and truncate more of the other addends than needed. The bound
// holds for all operands of magnitude at most largest_operand. For scaled operands this part is usually far
// below every result that occurs, but not always: a product of fp16 numbers with a subnormal factor loses up
// to 2^-39 of the other factor where two extra bits are kept.
double accumulation_floor(Accumulator accumulator, FormatId format, std::int64_t n, double largest_operand);

// A-priori bound of the error of a schedule's additions.

// Returns c such that the computed sum differs from the exact sum of the schedule's terms by at most c *
// (|A||B|)_ij. Precondition: |a_s| <= ratios_a[s] * |a| and |b_t| <= ratios_b[t] * |b| for all slices, with
// the weights of the schedule applied.
//
// Derivation. Let w_t = ratios_a * ratios_b of term t and e(n) the accumulator's bound for a run of
// n products relative to the magnitudes in it (schedule/accumulator.hpp).
//  - Term-wise order: the run of term t adds to an accumulator that holds the terms of its group before it,
//    so it loses at most e(n) * (w_1 + ... + w_t) * |a||b| over the block's n indices.
//  - Alternating order: at worst every run adds to everything that the group holds at its end.
//  - A rescaling by a power of two is exact (fp32 accumulators stay far from subnormal: slices are scaled,
//    fp16 products are multiples of 2^-48; rescale_exponent >= -24 keeps that so).
//  - Outside the engine b blocks are added with b - 1 roundings of u = 2^-24 each; the first addition, to
//    zero, is exact. Joint sums take an addition for every group of every block.
//  - With cuBLAS every term of a block is added outside. e(n) contains what such an addition loses of the
//    block's own terms; this bound adds what it loses of earlier blocks.
//  - Additions in fp64 (adds_outside_in_fp64) lose no more. Two addends that are rounded to fp64 and then to
//    fp32 give the same result as one rounding to fp32 (Figueroa, When is double rounding innocuous?, 1995:
//    53 >= 2 * 24 + 2). For more addends, b - 1 roundings of 2^-53 and a last one of u are below 2 u.
//  - Integer sums are exact: 0, or infinity where an accumulator may wrap within a block.
// Second-order terms: the magnitudes above are those of computed partial sums, each at most (1 + c) times the
// exact one. If all losses in terms of exact magnitudes add up to f, the total loss is at most exp(f) - 1.
double accumulation_bound(const Schedule& schedule, std::span<const double> ratios_a,
                          std::span<const double> ratios_b, Accumulator accumulator, const Format& format,
                          std::int64_t k);

}  // namespace kintsugi::core
