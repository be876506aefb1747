// Slices of a few elements of one vector, for every ElementKind.
#pragma once

#include <type_traits>

#include "engines/cuda/split/elements/byte_elements.cuh"
#include "engines/cuda/split/elements/floating_elements.cuh"

namespace kintsugi::core::cuda {

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
