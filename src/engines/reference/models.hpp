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

#include "engines/reference/models/amx_bf16.hpp"
#include "engines/reference/models/sequential.hpp"
#include "engines/reference/models/tensor_core.hpp"
#include "formats/format.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

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
      case Accumulator::v100: return visitor.template operator()<V100<Id>>(), true;
      case Accumulator::a100: return visitor.template operator()<A100<Id>>(), true;
      case Accumulator::h200: return visitor.template operator()<H200<Id>>(), true;
      case Accumulator::h200_mma: return visitor.template operator()<H200Mma<Id>>(), true;
      default: break;
    }
  }
  if constexpr (Id == FormatId::bf16) {
    if (accumulator == Accumulator::amx_bf16) return visitor.template operator()<AmxBf16>(), true;
    if (accumulator == Accumulator::avx512_bf16) return visitor.template operator()<Avx512Bf16>(), true;
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
