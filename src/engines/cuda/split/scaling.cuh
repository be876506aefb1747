// Scale of a vector from its range or norm, which are stored where all kernels read them.
#pragma once

#include "arith/residue/norm_proof.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/scaling.hpp"

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda
