// Scale of a vector, and slices of a few of its elements, for every ElementKind: of single elements by any
// rule; one-byte slices (rounded residuals, digits of a grid, residues); and floating-point slices.
// VectorWriter selects among them.
#pragma once

#include <type_traits>
#include <utility>

#include "arith/residue/norm_proof.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/integer_elements.hpp"
#include "engines/cuda/split/scaling.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Scale of a vector from its range or norm, which are stored where all kernels read them.

// The task's rule with its pointer to the format set.
__device__ inline SplitRule rule_of(const SplitTask& task) {
  SplitRule rule = task.rule;
  rule.format = &task.format;
  return rule;
}

// The task's rule. If the batch item has a fit, the fit replaces the residual's scale and the first rounding.
// Kernels of a kind that never has a fit do not look for one.
__device__ inline SplitRule fitted_rule_of(const SplitTask& task, ElementKind kind) {
  SplitRule rule = rule_of(task);
  if ((kind == ElementKind::fitted || kind == ElementKind::by_rule) && task.fit != nullptr) {
    const ResidualFit fit = task.fit->residual;
    rule.residual_exponent = fit.residual_exponent;
    rule.first_rounding = fit.first_rounding;
  }
  return rule;
}

// Sets the range's scale from the vector's exponents or from its norm, whichever the rule demands.
__device__ inline void scale_range(const SplitTask& task, const SplitRule& rule, std::int64_t vector,
                                   VectorRange& range) {
  set_scale(range, rule);
  if (rule.scales != ScaleRule::norm || (range.flags & VectorRange::all_zero) != 0) return;
  range.scale = norm_scale(range, rule, task.norms[item_of_block() * task.item_ranges + vector].bits);
}

// Returns the scaling of a vector, from its stored range if ranges are known, else from `found`. Several
// threads may call this for one vector; `stores` must be true in one of them, which stores the range with its
// scale.
__device__ inline Scaling finish_range(const SplitTask& task, ElementKind kind, std::int64_t vector,
                                       const VectorRange& found, bool stores = true) {
  VectorRange& stored_range = range_of(task, vector);
  VectorRange range = task.ranges_known ? stored_range : found;
  const SplitRule rule = fitted_rule_of(task, kind);
  scale_range(task, rule, vector, range);
  if (stores) stored_range = range;
  const bool is_fitted = kind == ElementKind::fitted;
  return scaling_of(kind, range, rule,
                    is_fitted ? largest_fitting_bound(rule, task.format) : task.largest_bound);
}

// Returns the scaling of a vector from its range and norm, which were just found. Sets the flag if the norm
// rules the proof out. If this or any other vector has set the flag, the vector is left out. `stores` must be
// true in one thread of the vector, which stores range and norm.
__device__ inline Scaling finish_norm(const SplitTask& task, std::int64_t vector, VectorRange range,
                                      const VectorNorm& norm, bool stores = true) {
  const SplitRule rule = rule_of(task);
  set_scale(range, rule);
  const bool is_zero = (range.flags & VectorRange::all_zero) != 0;
  if (!is_zero) range.scale = norm_scale(range, rule, norm.bits);
  if (stores) {
    range_of(task, vector) = range;
    task.norms[item_of_block() * task.item_ranges + vector] = norm;
  }
  Scaling scaling = scaling_of(ElementKind::residues_by_norms, range, rule, task.largest_bound);
  volatile std::uint32_t* ruled_out = task.found_norms.ruled_out;
  const bool can_rule_out = range.finite() && !is_zero;
  if (can_rule_out && rules_proof_out(norm, norm_top(rule.top_exponent, rule.sum_bits, norm.bits),
                                      task.length, task.found_norms.coefficient))
    *ruled_out = 1;
  scaling.left_out = *ruled_out != 0;
  return scaling;
}

// Splits of single elements by any rule, and stores of slices.

// Constants of the moduli in constant memory. The host has tables of its own.
struct ModulusTable {
  FloatModulus float_moduli[max_moduli];
  WideFloatModulus wide_moduli[max_moduli];
  std::int32_t modulus[max_moduli];
  double inverse[max_moduli];
  double limbs[max_moduli][max_limbs];
};

static __constant__ constexpr ModulusTable modulus_table = [] {
  ModulusTable table{};
  for (int t = 0; t < max_moduli; ++t) {
    table.float_moduli[t] = float_modulus(byte_modulus(moduli[t]));
    table.wide_moduli[t] = wide_float_modulus(byte_modulus(moduli[t]));
    table.modulus[t] = moduli[t];
    table.inverse[t] = 1.0 / moduli[t];
    for (int l = 0; l < max_limbs; ++l) table.limbs[t][l] = residue_detail::limb_residues[t][l];
  }
  return table;
}();

// split_into_residues() with tables in constant memory.
template <class Store>
__device__ void split_into_any_residues(const SplitRule& rule, double x, int scale, Store&& store) {
  const int limb_count = limbs_of(rule.top_exponent + 1);
  const TwoFactors factors = two_factors(scale);
  double integer = nearest_integer(x * factors.first * factors.second);
  double limbs[max_limbs] = {};
#pragma unroll
  for (int l = max_limbs - 1; l >= 0; --l) {
    if (l < limb_count) limbs[l] = take_limb(integer, l);
  }
  for (int t = 0; t < rule.slices; ++t) {
    double sum = 0;
#pragma unroll
    for (int l = 0; l < max_limbs; ++l) sum += limbs[l] * modulus_table.limbs[t][l];
    const std::int32_t residue = small_residue(sum, modulus_table.modulus[t], modulus_table.inverse[t]);
    store(t, static_cast<std::uint64_t>(residue) & 0xffU);
  }
}

// split_element(), compiled only for the rules that kernels of this kind have.
template <ElementKind kind, class Store>
__device__ void split_any(const SplitRule& rule, double x, int scale, Store&& store) {
  if constexpr (kind == ElementKind::digits) return split_into_digits(rule, x, scale, store);
  if constexpr (kind == ElementKind::residues || kind == ElementKind::residues_by_norms ||
                kind == ElementKind::wide_residues)
    return split_into_any_residues(rule, x, scale, store);
  if constexpr (kind != ElementKind::by_rule) return split_into_residuals(rule, x, scale, store);
  switch (rule.kind) {
    case SplitKind::rounded_residuals: return split_into_residuals(rule, x, scale, store);
    case SplitKind::grid_digits: return split_into_digits(rule, x, scale, store);
    case SplitKind::magnitude:
      return store(0, static_cast<std::uint64_t>(times_power_of_two(x < 0 ? -x : x, scale)));
    case SplitKind::magnitude_above: return store(0, magnitude_above(x, scale));
    case SplitKind::residues: return split_into_any_residues(rule, x, scale, store);
    case SplitKind::successive:
    case SplitKind::tiles:
    case SplitKind::direct_residuals: return;
  }
}

// Stores the lowest `bytes` bytes of a bit pattern.
__device__ inline void store_pattern(std::byte* target, int bytes, std::uint64_t pattern) {
  switch (bytes) {
    case 1: *reinterpret_cast<std::uint8_t*>(target) = static_cast<std::uint8_t>(pattern); return;
    case 2: *reinterpret_cast<std::uint16_t*>(target) = static_cast<std::uint16_t>(pattern); return;
    case 4: *reinterpret_cast<std::uint32_t*>(target) = static_cast<std::uint32_t>(pattern); return;
    default: *reinterpret_cast<std::uint64_t*>(target) = pattern;
  }
}

// Address of the slices of the thread block's batch item.
__device__ inline std::byte* slices_of(const SplitTask& task) {
  return task.slices + item_of_block() * task.item_bytes;
}

// Writes an element's slices by the functions of arith/split_rule.hpp. It is not inlined, since few elements
// need it.
template <ElementKind kind>
__device__ __noinline__ void write_any(const SplitTask& task, int scale, double x, std::int64_t offset) {
  const SplitRule rule = fitted_rule_of(task, kind);
  const int bytes = task.format.storage_bytes;
  const double finite = x - x == 0 ? x : 0.0;
  split_any<kind>(rule, finite, scale, [&](int s, std::uint64_t pattern) {
    store_pattern(slices_of(task) + (s * task.slice_stride + offset) * bytes, bytes, pattern);
  });
}

// Stores words with the widest stores that their number allows. `target` must be aligned to them.
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

// One-byte slices. `offset` is the index of the first element in each slice.

// Returns a word of the low bytes of four integers.
__device__ inline std::uint32_t low_bytes(const std::uint32_t (&integers)[4]) {
  const std::uint32_t low = __byte_perm(integers[0], integers[1], 0x0040);
  const std::uint32_t high = __byte_perm(integers[2], integers[3], 0x0040);
  return __byte_perm(low, high, 0x5410);
}

// Stores the low byte of each integer. Four of these bytes are stored as one word.
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

// Writes slices of rounded residuals. Nothing saturates, because |x 2^scale| < 127, and a residual is at most
// 1/2 before it is scaled. FP32 may drop bits of x; they are far below the last slice.
template <int count>
__device__ void write_quantised(const SplitTask& task, const Scaling& scaling, const float (&x)[count],
                                std::int64_t offset) {
  const float residual_factor = static_cast<float>(power_of_two(task.rule.residual_exponent));
  const auto first_factor = static_cast<float>(scaling.first);
  const auto second_factor = static_cast<float>(scaling.second);
  float residual[count];
#pragma unroll
  for (int i = 0; i < count; ++i) residual[i] = x[i] * first_factor * second_factor;
  std::byte* target = slices_of(task) + offset;
  for (int s = 0; s < task.rule.slices; ++s) {
    constexpr float units = 0x1.8p23F;  // x + units has the integer nearest to x in its low bits
    std::uint32_t integers[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float rounded = residual[i] + units;
      integers[i] = __float_as_uint(rounded);
      residual[i] = (residual[i] - (rounded - units)) * residual_factor;
    }
    store_bytes(target, integers);
    target += task.slice_stride;
  }
}

// Sets digits[i] to the digits of the integer nearest to the scaled x[i].
template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], ByteDigits (&digits)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(x[i]) * scaling.first * scaling.second;
    digits[i] = balanced_digits(__double2ll_rn(scaled));
  }
}

// Writes slices of digits. The last slice is written first, since it has the least significant digits.
template <class Source, int count>
__device__ void write_digits(const SplitTask& task, const Scaling& scaling, const Source (&x)[count],
                             std::int64_t offset) {
  ByteDigits digits[count];
  to_digits(scaling, x, digits);
  std::byte* target = slices_of(task) + offset + (task.rule.slices - 1) * task.slice_stride;
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

// Adds the elements' rounding errors to `errors`.
template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], WideByteDigits (&digits)[count],
                          double& errors) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    digits[i] = nearest_digits(static_cast<double>(x[i]) * scaling.first * scaling.second, errors);
}
template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], WideByteDigits (&digits)[count]) {
  double errors = 0;
  to_digits(scaling, x, digits, errors);
}

// Constants of modulus t for integers with digits of type Digits. With `known_modulus` they are known when
// the instructions are compiled.
template <class Digits>
__device__ auto modulus_of_digits(int t) {
  if constexpr (std::is_same_v<Digits, ByteDigits>) {
    return modulus_table.float_moduli[t];
  } else {
    return modulus_table.wide_moduli[t];
  }
}
template <class Digits, int t>
constexpr auto known_modulus() {
  if constexpr (std::is_same_v<Digits, ByteDigits>) {
    return float_modulus(byte_modulus(moduli[t]));
  } else {
    return wide_float_modulus(byte_modulus(moduli[t]));
  }
}

// Writes slice t of residues. Its constants become part of the instructions if `modulus` is known when they
// are compiled.
template <class Modulus, class Digits, int count>
__device__ __forceinline__ void write_residue(const Modulus& modulus, const Digits (&digits)[count],
                                              std::byte* target) {
  std::uint32_t integers[count];
#pragma unroll
  for (int i = 0; i < count; ++i) integers[i] = byte_residue(digits[i], modulus);
  store_bytes(target, integers);
}

// Number of slices whose constants are part of the instructions: all that FP64 results need.
template <class Digits>
inline constexpr int unrolled_residues = std::is_same_v<Digits, ByteDigits> ? 16 : 19;

// Writes the slices of the first `slices` of these moduli.
template <int... moduli_index, class Digits, int count>
__device__ __forceinline__ void write_first_residues(std::integer_sequence<int, moduli_index...>, int slices,
                                                     std::int64_t slice_stride, const Digits (&digits)[count],
                                                     std::byte* target) {
  const auto write = [&]<int t>(std::integral_constant<int, t>) {
    if (t >= slices) return false;
    constexpr auto modulus = known_modulus<Digits, t>();
    write_residue(modulus, digits, target);
    target += slice_stride;
    return true;
  };
  (write(std::integral_constant<int, moduli_index>{}) && ...);
}

// Writes slices of residues, which are computed from the digits of the elements' integers.
template <class Digits, class Source, int count>
__device__ void write_residues(const SplitTask& task, const Scaling& scaling, const Source (&x)[count],
                               std::int64_t offset) {
  constexpr int unrolled = unrolled_residues<Digits>;
  Digits digits[count];
  to_digits(scaling, x, digits);
  std::byte* target = slices_of(task) + offset;
  write_first_residues(std::make_integer_sequence<int, unrolled>{}, task.rule.slices, task.slice_stride,
                       digits, target);
  target += unrolled * task.slice_stride;
#pragma unroll 1
  for (int t = unrolled; t < task.rule.slices; ++t, target += task.slice_stride)
    write_residue(modulus_of_digits<Digits>(t), digits, target);
}

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
    if constexpr (kind != ElementKind::by_rule) {
      Source x[count];
      load<count, step, aligned>(elements, x);
      write_plain(x, first);
    }
  }

  // True if write_plain() may write the vector's elements. Otherwise write_element() must be used.
  __device__ bool is_plain() const { return kind != ElementKind::by_rule && scaling_.plain; }

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

// Calls write(kind) with the kind of the task's elements, which is one of `kinds`, as a constant.
template <ElementKind... kinds, class Write>
__device__ void with_kind(const SplitTask& task, const Write& write) {
  const auto write_as = [&]<ElementKind kind>() {
    if (task.kind == kind) write(std::integral_constant<ElementKind, kind>{});
    return task.kind == kind;
  };
  (write_as.template operator()<kinds>() || ...);
}

// Kind of the task's elements in a kernel of `kind`.
template <ElementKind kind>
__device__ ElementKind kind_of(const SplitTask& task) {
  if constexpr (kind == ElementKind::other) return task.kind;
  return kind;
}

// Calls write(kind) with the kind of the task's elements as a constant, in a kernel of `kind`.
template <ElementKind kind, class Write>
__device__ void with_kind_of(const SplitTask& task, const Write& write) {
  if constexpr (kind == ElementKind::other) {
    with_kind<ElementKind::tf32, ElementKind::quantised, ElementKind::digits>(task, write);
  } else {
    write(std::integral_constant<ElementKind, kind>{});
  }
}

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
