// Slices of a few elements of one vector, for every ElementKind.
#pragma once

#include <type_traits>

#include "engines/cuda/common/any_element.cuh"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/byte_elements.cuh"
#include "engines/cuda/split/scaling.hpp"

namespace kintsugi::core::cuda {

// A few elements of a contiguous vector in registers, which a thread reads at once.

inline constexpr int elements_at_once = 8;

// Loads elements p, p + 1, ... of a vector of `length` contiguous elements, with zeros after its end.
// `aligned`: source + p is aligned to sixteen bytes.
template <class Source>
__device__ void load_elements(const Source* source, std::int64_t p, std::int64_t length, bool aligned,
                              Source (&x)[elements_at_once]) {
  if (aligned && p + elements_at_once <= length) {
    constexpr int words = sizeof x / sizeof(uint4);
    uint4 bits[words];
#pragma unroll
    for (int i = 0; i < words; ++i) bits[i] = __ldg(reinterpret_cast<const uint4*>(source + p) + i);
    memcpy(x, bits, sizeof bits);
    return;
  }
#pragma unroll
  for (int i = 0; i < elements_at_once; ++i) x[i] = p + i < length ? __ldg(source + p + i) : Source(0);
}

// Floating-point slices of a few elements of one vector, contiguous along k.

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

// Writes slices of a vector, a few elements at a time. They are computed together if the vector is plain
// (Scaling::plain), else one by one.
template <ElementKind kind>
class VectorWriter {
  static constexpr bool floating = is_floating(kind);
  static constexpr ElementKind format =
      kind == ElementKind::fitted || kind == ElementKind::fp16_with_depth ? ElementKind::fp16 : kind;

 public:
  __device__ VectorWriter(const SplitTask& task, const Scaling& scaling, std::int64_t vector)
      : task_(task), scaling_(scaling), vector_(static_cast<std::int32_t>(vector)) {
    if constexpr (floating) split_ = FloatingSplit(task, fitted_rule_of(task, kind), scaling, vector);
  }

  // Writes elements first ... first + count - 1, which are in shared memory, `step` apart. `aligned`: the
  // first of them is aligned to 16 bytes.
  template <int count, int step, bool aligned = false, class Source>
  __device__ void write(const Source* elements, std::int64_t first) const {
    if (!is_plain()) {
#pragma unroll 1
      for (int i = 0; i < count; ++i) write_element(elements[i * step], first + i);
      return;
    }
    if constexpr (kind != ElementKind::any) {
      Source x[count];
      load<count, step, aligned>(elements, x);
      write_plain(x, first);
    }
  }

  // True if write_plain() may write the vector's elements. Otherwise write_element() must be used.
  __device__ bool is_plain() const { return kind != ElementKind::any && scaling_.plain; }

  __device__ void write_element(double x, std::int64_t element) const {
    write_any<kind>(task_, scaling_.scale, x, offset_of(element));
  }

  // Writes elements first ... first + count - 1 of a vector for which is_plain() is true.
  template <int count, class Source>
  __device__ void write_plain(const Source (&x)[count], std::int64_t first) const {
    if constexpr (floating) {
      write_floating<format>(split_, x, first);
    } else if constexpr (kind == ElementKind::quantised) {
      write_quantised(task_, scaling_, x, offset_of(first));
    } else if constexpr (kind == ElementKind::digits) {
      write_digits(task_, scaling_, x, offset_of(first));
    } else {
      using Digits = std::conditional_t<kind == ElementKind::wide_residues, WideByteDigits, ByteDigits>;
      write_residues<Digits>(task_, scaling_, x, offset_of(first));
    }
  }

 private:
  // Index of the vector's element in each slice.
  __device__ std::int64_t offset_of(std::int64_t element) const {
    return vector_ * task_.vector_stride + element;
  }

  template <int count, int step, bool aligned, class Source>
  __device__ static void load(const Source* elements, Source (&x)[count]) {
    if constexpr (step == 1 && aligned) {
      constexpr int words = count * sizeof(Source) / sizeof(uint4);
      uint4 bits[words];
#pragma unroll
      for (int i = 0; i < words; ++i) bits[i] = reinterpret_cast<const uint4*>(elements)[i];
      memcpy(x, bits, sizeof bits);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) x[i] = elements[i * step];
    }
  }

  const SplitTask& task_;
  Scaling scaling_;
  std::int32_t vector_;  // 32 bits: slices of more vectors exceed any memory
  FloatingSplit split_;  // used if `floating`
};

// Writes `count` zeros of padding to each slice, from `offset` on.
template <int count>
__device__ void write_zeros(const SplitTask& task, std::int64_t offset) {
  const int bytes = task.format.storage_bytes;
  std::byte* target = slices_of(task) + offset * bytes;
  for (int s = 0; s < task.rule.slices; ++s, target += task.slice_stride * bytes) {
    if (reinterpret_cast<std::uintptr_t>(target) % sizeof(uint2) == 0 && count * bytes % sizeof(uint2) == 0) {
      for (int i = 0; i < count * bytes; i += static_cast<int>(sizeof(uint2)))
        *reinterpret_cast<uint2*>(target + i) = make_uint2(0, 0);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) store_pattern(target + i * bytes, bytes, 0);
    }
  }
}

}  // namespace kintsugi::core::cuda
