// Floating-point slices of a few elements of one vector, contiguous along k.
#pragma once

#include "engines/cuda/common/any_element.cuh"
#include "engines/cuda/split/scaling.hpp"

namespace kintsugi::core::cuda {

// Packs the bit patterns of two rounded numbers into one word. unpack_pair() returns the rounded numbers.
template <ElementKind kind, bool nearest>
__device__ std::uint32_t pack_pair(float low, float high) {
  std::uint32_t word = 0;
  if constexpr (kind == ElementKind::fp16 && nearest) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else if constexpr (kind == ElementKind::fp16) {
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else if constexpr (nearest) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
}

template <ElementKind kind>
__device__ void unpack_pair(std::uint32_t word, float& low, float& high) {
  if constexpr (kind == ElementKind::fp16) {
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(low), "=f"(high)
        : "r"(word));
  } else {
    low = __uint_as_float(word << 16);
    high = __uint_as_float(word & 0xffff0000U);
  }
}

// TF32 pattern: the pattern of an FP32 number whose last 13 bits are rounded away. TF32 has FP32's exponents.
template <bool nearest>
__device__ std::uint32_t tf32_pattern(float x) {
  std::uint32_t bits = __float_as_uint(x);
  if constexpr (nearest) bits += 0xfffU + ((bits >> 13) & 1U);
  return bits & ~0x1fffU;
}

// Writes `residual`, rounded to nearest or towards zero, as a slice, and subtracts the slice from it. Does
// not subtract if `last` is true: no residual is needed after the last slice.
template <ElementKind kind, bool nearest, int count>
__device__ void write_rounded_slice(float (&residual)[count], bool last, std::byte* target) {
  if constexpr (kind == ElementKind::tf32) {
    std::uint32_t words[count];
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = tf32_pattern<nearest>(residual[i]);
    store_words(target, words);
    if (last) return;
#pragma unroll
    for (int i = 0; i < count; ++i) residual[i] -= __uint_as_float(words[i]);
  } else {
    std::uint32_t words[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i)
      words[i] = pack_pair<kind, nearest>(residual[2 * i], residual[2 * i + 1]);
    store_words(target, words);
    if (last) return;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      float low = 0;
      float high = 0;
      unpack_pair<kind>(words[i], low, high);
      residual[2 * i] -= low;
      residual[2 * i + 1] -= high;
    }
  }
}

// Writes a slice of truncated bits (Rounding::bit_cut). It has no gradual underflow: an element below the
// normal numbers gives a zero of its sign, and the whole element remains as residual.
template <ElementKind kind, int count>
__device__ void write_cut_slice(float (&residual)[count], std::byte* target) {
  constexpr float smallest_normal = kind == ElementKind::fp16 ? 0x1p-14F : 0x1p-126F;
  float normal[count];
  float subnormal[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const bool is_subnormal = fabsf(residual[i]) < smallest_normal;
    normal[i] = is_subnormal ? copysignf(0.0F, residual[i]) : residual[i];
    subnormal[i] = is_subnormal ? residual[i] : 0.0F;
  }
  constexpr bool nearest = false;
  constexpr bool last = false;
  write_rounded_slice<kind, nearest>(normal, last, target);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    // One of the terms is zero. The addition turns -0 into +0, as -0 - (-0) does.
    residual[i] = normal[i] + subnormal[i];
  }
}

// Parameters of a vector's floating-point slices, in registers.
struct FloatingSplit {
  // 2^scale as a product of two factors. The second is 1 if FP32 holds 2^scale. For plain vectors products
  // with both are exact.
  float first_factor = 1;
  float second_factor = 1;
  float residual_factor = 1;
  int slices = 0;
  Rounding first_rounding = Rounding::nearest_even;
  Rounding residual_rounding = Rounding::nearest_even;
  std::int64_t slice_bytes = 0;
  std::byte* target = nullptr;  // slice 0 of the vector's first element

  FloatingSplit() = default;
  __device__ FloatingSplit(const SplitTask& task, const SplitRule& rule, const Scaling& scaling,
                           std::int64_t vector)
      : residual_factor(static_cast<float>(power_of_two(rule.residual_exponent))), slices(task.rule.slices),
        first_rounding(rule.first_rounding), residual_rounding(task.rule.residual_rounding),
        slice_bytes(task.slice_stride * task.format.storage_bytes),
        target(slices_of(task) + vector * task.vector_stride * task.format.storage_bytes) {
    const bool one_factor_suffices = scaling.scale >= -126 && scaling.scale <= 127;
    first_factor = static_cast<float>(one_factor_suffices ? scaling.first * scaling.second : scaling.first);
    second_factor = one_factor_suffices ? 1.0F : static_cast<float>(scaling.second);
  }
};

// Writes `residual` as a slice and replaces it by the next residual. After the last slice it has no meaning.
template <ElementKind kind, int count>
__device__ void write_slice(Rounding rounding, float (&residual)[count], bool last, std::byte* target) {
  if (rounding == Rounding::nearest_even) {
    write_rounded_slice<kind, /*nearest=*/true>(residual, last, target);
  } else if (rounding == Rounding::towards_zero) {
    write_rounded_slice<kind, /*nearest=*/false>(residual, last, target);
  } else {
    write_cut_slice<kind>(residual, target);
  }
}

// Writes all slices of elements `element`, element + 1, ... of the vector.
template <ElementKind kind, int count>
__device__ void write_floating(const FloatingSplit& split, const float (&x)[count], std::int64_t element) {
  constexpr int bytes = kind == ElementKind::tf32 ? 4 : 2;
  float residual[count];
#pragma unroll
  for (int i = 0; i < count; ++i) residual[i] = x[i] * split.first_factor;
  if (split.second_factor != 1.0F) {
#pragma unroll
    for (int i = 0; i < count; ++i) residual[i] *= split.second_factor;
  }
  std::byte* target = split.target + element * bytes;
  write_slice<kind>(split.first_rounding, residual, split.slices == 1, target);
  for (int s = 1; s < split.slices; ++s) {
#pragma unroll
    for (int i = 0; i < count; ++i) residual[i] *= split.residual_factor;
    target += split.slice_bytes;
    write_slice<kind>(split.residual_rounding, residual, s + 1 == split.slices, target);
  }
}

}  // namespace kintsugi::core::cuda
