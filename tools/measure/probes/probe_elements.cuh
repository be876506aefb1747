// Elements of the probes in the formats of matrix units.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "probe_values.hpp"

namespace kintsugi::measure {

struct Fp16Elements {
  using Element = __half;
  using Sum = float;
  static __device__ Element element(ProbeSide side, int vector, int k) {
    return __float2half(static_cast<float>(probe_element(side, vector, k, probe_limit_11_bits)) * 0x1p-11f);
  }
};

struct Bf16Elements {
  using Element = __nv_bfloat16;
  using Sum = float;
  static __device__ Element element(ProbeSide side, int vector, int k) {
    return __float2bfloat16(static_cast<float>(probe_element(side, vector, k, probe_limit_8_bits)) * 0x1p-8f);
  }
};

struct Tf32Elements {
  using Element = float;
  using Sum = float;
  static __device__ Element element(ProbeSide side, int vector, int k) {
    return static_cast<float>(probe_element(side, vector, k, probe_limit_11_bits)) * 0x1p-11f;
  }
};

struct Int8Elements {
  using Element = signed char;
  using Sum = int;
  static __device__ Element element(ProbeSide side, int vector, int k) {
    return static_cast<Element>(probe_element(side, vector, k, probe_limit_int8));
  }
};

}  // namespace kintsugi::measure
