// Slices of a few elements of one vector, beside each other along k.
#pragma once

#include <type_traits>

#include "arith/norm_proof.hpp"
#include "engines/cuda/splits/integer_elements.hpp"
#include "engines/cuda/splits/magnitudes.hpp"
#include "engines/cuda/splits/operands.cuh"
#include "engines/cuda/splits/scaling.hpp"
#include "engines/cuda/splits/split_task.hpp"

namespace kintsugi::core::cuda {

// The host's tables, where kernels reach them.
struct ModulusTable {
  ByteModulus of_bytes[most_moduli];
  std::int32_t modulus[most_moduli];
  double inverse[most_moduli];
  double limbs[most_moduli][most_limbs];
};

static __constant__ constexpr ModulusTable modulus_table = [] {
  ModulusTable table{};
  for (int t = 0; t < most_moduli; ++t) {
    table.of_bytes[t] = byte_modulus(moduli[t]);
    table.modulus[t] = moduli[t];
    table.inverse[t] = 1.0 / moduli[t];
    for (int l = 0; l < most_limbs; ++l) table.limbs[t][l] = residue_detail::limb_residues[t][l];
  }
  return table;
}();

// split_into_residues(), whose tables are the host's.
template <class Store>
__device__ void split_into_any_residues(const SplitRule& rule, double x, int scale, Store&& store) {
  const int limb_count = limbs_of(rule.top_exponent + 1);
  const TwoFactors factors = two_factors(scale);
  double integer = any_rounded_to_integer(x * factors.first * factors.second);
  double limbs[most_limbs] = {};
#pragma unroll
  for (int l = most_limbs - 1; l >= 0; --l) {
    if (l < limb_count) limbs[l] = take_limb(integer, l);
  }
  for (int t = 0; t < rule.slices; ++t) {
    double sum = 0;
#pragma unroll
    for (int l = 0; l < most_limbs; ++l) sum += limbs[l] * modulus_table.limbs[t][l];
    const std::int32_t residue = small_residue(sum, modulus_table.modulus[t], modulus_table.inverse[t]);
    store(t, static_cast<std::uint64_t>(residue) & 0xffU);
  }
}

// split_element(); of a kernel's kind, no more than its rules need.
template <ElementKind kind, class Store>
__device__ void split_any(const SplitRule& rule, double x, int scale, Store&& store) {
  if constexpr (kind == ElementKind::digits) return split_into_digits(rule, x, scale, store);
  if constexpr (kind == ElementKind::residues || kind == ElementKind::residues_by_norms ||
                kind == ElementKind::wide_residues)
    return split_into_any_residues(rule, x, scale, store);
  if constexpr (kind != ElementKind::any) return split_into_residuals(rule, x, scale, store);
  switch (rule.kind) {
    case SplitKind::hi_lo: return split_into_residuals(rule, x, scale, store);
    case SplitKind::fixed: return split_into_digits(rule, x, scale, store);
    case SplitKind::magnitude:
      return store(0, static_cast<std::uint64_t>(times_power_of_two(x < 0 ? -x : x, scale)));
    case SplitKind::magnitude_above: return store(0, magnitude_above(x, scale));
    case SplitKind::residues: return split_into_any_residues(rule, x, scale, store);
    case SplitKind::successive: return;
  }
}

__device__ inline void store_pattern(std::byte* target, int bytes, std::uint64_t pattern) {
  switch (bytes) {
    case 1: *reinterpret_cast<std::uint8_t*>(target) = static_cast<std::uint8_t>(pattern); return;
    case 2: *reinterpret_cast<std::uint16_t*>(target) = static_cast<std::uint16_t>(pattern); return;
    case 4: *reinterpret_cast<std::uint32_t*>(target) = static_cast<std::uint32_t>(pattern); return;
    default: *reinterpret_cast<std::uint64_t*>(target) = pattern;
  }
}

__device__ inline SplitRule rule_of(const SplitTask& task) {
  SplitRule rule = task.rule;
  rule.format = &task.format;
  return rule;
}

// Kernels of kinds that know no fit do not look for one.
__device__ inline SplitRule fitted_rule_of(const SplitTask& task, ElementKind kind) {
  SplitRule rule = rule_of(task);
  if ((kind == ElementKind::fitted || kind == ElementKind::any) && task.fit != nullptr) {
    const ResidualFit fit = task.fit->residual;
    rule.residual_exponent = fit.residual_exponent;
    rule.first_rounding = fit.first_rounding;
  }
  return rule;
}

// Of the entry of the batch that the block works on.
__device__ inline std::byte* slices_of(const SplitTask& task) {
  return task.slices + entry_of_block() * task.entry_bytes;
}

// By the functions of arith/split_rule.hpp. Not inlined: most elements never need it.
template <ElementKind kind>
__device__ __noinline__ void write_any(const SplitTask& task, int scale, double x, std::int64_t place) {
  const SplitRule rule = fitted_rule_of(task, kind);
  const int bytes = task.format.storage_bytes;
  const double finite = x - x == 0 ? x : 0.0;
  split_any<kind>(rule, finite, scale, [&](int s, std::uint64_t pattern) {
    store_pattern(slices_of(task) + (s * task.slice_stride + place) * bytes, bytes, pattern);
  });
}

template <int words>
__device__ void store_words(std::byte* target, const std::uint32_t (&w)[words]) {
  if constexpr (words == 1) {
    *reinterpret_cast<std::uint32_t*>(target) = w[0];
  } else if constexpr (words == 2) {
    *reinterpret_cast<uint2*>(target) = make_uint2(w[0], w[1]);
  } else {
#pragma unroll
    for (int i = 0; i < words; i += 4)
      reinterpret_cast<uint4*>(target)[i / 4] = make_uint4(w[i], w[i + 1], w[i + 2], w[i + 3]);
  }
}

// Patterns of two numbers in one word, and the numbers that they are.
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

// FP32 whose last 13 bits are rounded away: tf32 has its exponents.
template <bool nearest>
__device__ std::uint32_t tf32_pattern(float x) {
  std::uint32_t bits = __float_as_uint(x);
  if constexpr (nearest) bits += 0xfffU + ((bits >> 13) & 1U);
  return bits & ~0x1fffU;
}

// One slice of the rests, which become what it leaves; of the last one nobody asks for that.
template <ElementKind kind, bool nearest, int count>
__device__ void take_rounded_slice(float (&rest)[count], bool last, std::byte* target) {
  if constexpr (kind == ElementKind::tf32) {
    std::uint32_t words[count];
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = tf32_pattern<nearest>(rest[i]);
    store_words(target, words);
    if (last) return;
#pragma unroll
    for (int i = 0; i < count; ++i) rest[i] -= __uint_as_float(words[i]);
  } else {
    std::uint32_t words[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i) words[i] = pack_pair<kind, nearest>(rest[2 * i], rest[2 * i + 1]);
    store_words(target, words);
    if (last) return;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      float low = 0;
      float high = 0;
      unpack_pair<kind>(words[i], low, high);
      rest[2 * i] -= low;
      rest[2 * i + 1] -= high;
    }
  }
}

// Cut bits know no gradual underflow: below the normal numbers they are a zero with its sign, and all is rest.
template <ElementKind kind, int count>
__device__ void take_cut_slice(float (&rest)[count], std::byte* target) {
  constexpr float smallest_normal = kind == ElementKind::fp16 ? 0x1p-14F : 0x1p-126F;
  float kept[count];
  float below[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const bool is_below = fabsf(rest[i]) < smallest_normal;
    kept[i] = is_below ? copysignf(0.0F, rest[i]) : rest[i];
    below[i] = is_below ? rest[i] : 0.0F;
  }
  take_rounded_slice<kind, false>(kept, false, target);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    // A zero's rest is +0, as -0 - -0 is.
    rest[i] = kept[i] + below[i];
  }
}

// What slices of a vector's rounded rests take, in registers.
struct FloatingSplit {
  float first = 1;  // 2^scale in two factors, or in one where FP32 has it: what is plain is exact either way
  float second = 1;
  float residual = 1;
  int slices = 0;
  Rounding first_rounding = Rounding::nearest_even;
  Rounding residual_rounding = Rounding::nearest_even;
  std::int64_t slice_bytes = 0;
  std::byte* target = nullptr;  // of the vector's first element

  FloatingSplit() = default;
  __device__ FloatingSplit(const SplitTask& task, const SplitRule& rule, const Scaling& scaling,
                           std::int64_t vector)
      : residual(static_cast<float>(power_of_two(rule.residual_exponent))), slices(task.rule.slices),
        first_rounding(rule.first_rounding), residual_rounding(task.rule.residual_rounding),
        slice_bytes(task.slice_stride * task.format.storage_bytes),
        target(slices_of(task) + vector * task.vector_stride * task.format.storage_bytes) {
    const bool at_once = scaling.scale >= -126 && scaling.scale <= 127;
    first = static_cast<float>(at_once ? scaling.first * scaling.second : scaling.first);
    second = at_once ? 1.0F : static_cast<float>(scaling.second);
  }
};

template <ElementKind kind, int count>
__device__ void take_slice(const FloatingSplit& split, Rounding rounding, float (&rest)[count], bool last,
                           std::byte* target) {
  if (rounding == Rounding::nearest_even) {
    take_rounded_slice<kind, true>(rest, last, target);
  } else if (rounding == Rounding::towards_zero) {
    take_rounded_slice<kind, false>(rest, last, target);
  } else {
    take_cut_slice<kind>(rest, target);
  }
}

template <ElementKind kind, int count>
__device__ void write_floating(const FloatingSplit& split, const float (&x)[count], std::int64_t element) {
  constexpr int bytes = kind == ElementKind::tf32 ? 4 : 2;
  float rest[count];
#pragma unroll
  for (int i = 0; i < count; ++i) rest[i] = x[i] * split.first;
  if (split.second != 1.0F) {
#pragma unroll
    for (int i = 0; i < count; ++i) rest[i] *= split.second;
  }
  std::byte* target = split.target + element * bytes;
  take_slice<kind>(split, split.first_rounding, rest, split.slices == 1, target);
  for (int s = 1; s < split.slices; ++s) {
#pragma unroll
    for (int i = 0; i < count; ++i) rest[i] *= split.residual;
    target += split.slice_bytes;
    take_slice<kind>(split, split.residual_rounding, rest, s + 1 == split.slices, target);
  }
}

// The last bytes of four integers a word.
template <int count>
__device__ void store_bytes(std::byte* target, const std::uint32_t (&integers)[count]) {
  std::uint32_t words[count / 4];
#pragma unroll
  for (int i = 0; i < count / 4; ++i) {
    const std::uint32_t low = __byte_perm(integers[4 * i], integers[4 * i + 1], 0x0040);
    const std::uint32_t high = __byte_perm(integers[4 * i + 2], integers[4 * i + 3], 0x0040);
    words[i] = __byte_perm(low, high, 0x5410);
  }
  store_words(target, words);
}

// |x 2^scale| < 127, so that nothing saturates; rests are at most a half, times 2^7 or so. What FP32 cannot hold is far
// below the last slice.
template <int count>
__device__ void write_quantised(const SplitTask& task, const Scaling& scaling, const float (&x)[count],
                                std::int64_t place) {
  const float residual = static_cast<float>(power_of_two(task.rule.residual_exponent));
  const auto first = static_cast<float>(scaling.first);
  const auto second = static_cast<float>(scaling.second);
  float rest[count];
#pragma unroll
  for (int i = 0; i < count; ++i) rest[i] = x[i] * first * second;
  std::byte* target = slices_of(task) + place;
  for (int s = 0; s < task.rule.slices; ++s) {
    constexpr float units = 0x1.8p23F;  // FP32 numbers beside it have integers as their last bits
    std::uint32_t integers[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float rounded = rest[i] + units;
      integers[i] = __float_as_uint(rounded);
      rest[i] = (rest[i] - (rounded - units)) * residual;
    }
    store_bytes(target, integers);
    target += task.slice_stride;
  }
}

template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], ByteDigits (&digits)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(x[i]) * scaling.first * scaling.second;
    digits[i] = balanced_digits(__double2ll_rn(scaled));
  }
}

template <class Source, int count>
__device__ void write_digits(const SplitTask& task, const Scaling& scaling, const Source (&x)[count],
                             std::int64_t place) {
  ByteDigits digits[count];
  to_digits(scaling, x, digits);
  std::byte* target = slices_of(task) + place + (task.rule.slices - 1) * task.slice_stride;
  for (int s = task.rule.slices - 1; s >= 0; --s) {
    std::uint32_t integers[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      integers[i] = digits[i].low;
      digits[i].low = __funnelshift_r(digits[i].low, digits[i].high, 8);
      digits[i].high >>= 8;
    }
    store_bytes(target, integers);
    target -= task.slice_stride;
  }
}

template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], WideByteDigits (&digits)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(x[i]) * scaling.first * scaling.second;
    digits[i] = wide_balanced_digits(any_rounded_to_integer(scaled));
  }
}

template <class Digits, class Source, int count>
__device__ void write_residues(const SplitTask& task, const Scaling& scaling, const Source (&x)[count],
                               std::int64_t place) {
  Digits digits[count];
  to_digits(scaling, x, digits);
  std::byte* target = slices_of(task) + place;
  for (int t = 0; t < task.rule.slices; ++t) {
    const ByteModulus modulus = modulus_table.of_bytes[t];
    std::uint32_t integers[count];
#pragma unroll
    for (int i = 0; i < count; ++i)
      integers[i] = static_cast<std::uint32_t>(byte_residue(digits[i], modulus));
    store_bytes(target, integers);
    target += task.slice_stride;
  }
}

// Writes slices of a vector, a few elements at a time.
template <ElementKind kind>
class VectorWriter {
  static constexpr bool floating = is_floating(kind);
  static constexpr ElementKind arithmetic =
      kind == ElementKind::fitted || kind == ElementKind::fp16_with_depth ? ElementKind::fp16 : kind;

 public:
  __device__ VectorWriter(const SplitTask& task, const Scaling& scaling, std::int64_t vector)
      : task_(task), scaling_(scaling), vector_(static_cast<std::int32_t>(vector)) {
    if constexpr (floating) split_ = FloatingSplit(task, fitted_rule_of(task, kind), scaling, vector);
  }

  // Elements `first` ... first + count - 1, in shared memory, `step` apart; aligned: the first to 16 bytes.
  template <int count, int step, bool aligned = false, class Source>
  __device__ void write(const Source* elements, std::int64_t first) const {
    if (kind == ElementKind::any || !scaling_.plain) {
#pragma unroll 1
      for (int i = 0; i < count; ++i)
        write_any<kind>(task_, scaling_.scale, elements[i * step], place(first + i));
      return;
    }
    if constexpr (kind != ElementKind::any) {
      Source x[count];
      load<count, step, aligned>(elements, x);
      if constexpr (floating) {
        write_floating<arithmetic>(split_, x, first);
      } else if constexpr (kind == ElementKind::quantised) {
        write_quantised(task_, scaling_, x, place(first));
      } else if constexpr (kind == ElementKind::digits) {
        write_digits(task_, scaling_, x, place(first));
      } else {
        using Digits = std::conditional_t<kind == ElementKind::wide_residues, WideByteDigits, ByteDigits>;
        write_residues<Digits>(task_, scaling_, x, place(first));
      }
    }
  }

 private:
  __device__ std::int64_t place(std::int64_t element) const {
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
  std::int32_t vector_;  // slices of more are larger than any memory
  FloatingSplit split_;
};

// Zeros in all slices, as stand in the padding.
template <int count>
__device__ void write_zeros(const SplitTask& task, std::int64_t place) {
  const int bytes = task.format.storage_bytes;
  std::byte* target = slices_of(task) + place * bytes;
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

// By exponents or norms.
__device__ inline void scale_range(const SplitTask& task, const SplitRule& rule, std::int64_t vector,
                                   VectorRange& range) {
  set_scale(range, rule);
  if (rule.scales != ScaleRule::norm || (range.flags & VectorRange::all_zero) != 0) return;
  range.scale = norm_scale(range, rule, task.norms[entry_of_block() * task.entry_ranges + vector].bits);
}

// The range that a vector has with its scale, written; `found` where it was not known.
__device__ inline Scaling finish_range(const SplitTask& task, ElementKind kind, std::int64_t vector,
                                       const VectorRange& found) {
  VectorRange& known = range_of(task, vector);
  VectorRange range = task.ranges_known ? known : found;
  const SplitRule rule = fitted_rule_of(task, kind);
  scale_range(task, rule, vector, range);
  known = range;
  const bool fitted = kind == ElementKind::fitted;
  return scaling_of(kind, range, rule,
                    fitted ? largest_fitting_bound(rule, task.format) : task.largest_bound);
}

// The range and the norm that a vector was found to have: by one of those that find them both are `written`.
__device__ inline Scaling finish_norm(const SplitTask& task, std::int64_t vector, VectorRange range,
                                      const VectorNorm& norm, bool written = true) {
  const SplitRule rule = rule_of(task);
  set_scale(range, rule);
  const bool is_zero = (range.flags & VectorRange::all_zero) != 0;
  if (!is_zero) range.scale = norm_scale(range, rule, norm.bits);
  if (written) {
    range_of(task, vector) = range;
    task.norms[entry_of_block() * task.entry_ranges + vector] = norm;
  }
  Scaling scaling = scaling_of(ElementKind::residues_by_norms, range, rule, task.largest_bound);
  volatile std::uint32_t* ruled_out = task.found_norms.ruled_out;
  const bool counts = range.finite() && !is_zero;
  if (counts && rules_proof_out(norm, norm_top(rule.top_exponent, rule.sum_bits, norm.bits),
                                task.found_norms.coefficient))
    *ruled_out = 1;
  scaling.left_out = *ruled_out != 0;
  return scaling;
}

}  // namespace kintsugi::core::cuda
