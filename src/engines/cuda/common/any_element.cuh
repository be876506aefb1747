// Splits of single elements by any rule, and stores of slices.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/integer_elements.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

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
  if constexpr (kind != ElementKind::any) return split_into_residuals(rule, x, scale, store);
  switch (rule.kind) {
    case SplitKind::rounded_residuals: return split_into_residuals(rule, x, scale, store);
    case SplitKind::grid_digits: return split_into_digits(rule, x, scale, store);
    case SplitKind::magnitude:
      return store(0, static_cast<std::uint64_t>(times_power_of_two(x < 0 ? -x : x, scale)));
    case SplitKind::magnitude_above: return store(0, magnitude_above(x, scale));
    case SplitKind::residues: return split_into_any_residues(rule, x, scale, store);
    case SplitKind::successive:
    case SplitKind::tiles: return;
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
  if ((kind == ElementKind::fitted || kind == ElementKind::any) && task.fit != nullptr) {
    const ResidualFit fit = task.fit->residual;
    rule.residual_exponent = fit.residual_exponent;
    rule.first_rounding = fit.first_rounding;
  }
  return rule;
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

}  // namespace kintsugi::core::cuda
