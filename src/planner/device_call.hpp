// Matrices, candidates and splits of a plan, in the form that the steps on a device use.
#pragma once

#include <cstdint>

#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns A or B as a matrix of vectors x k.
DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
// Returns C.
DeviceMatrix device_result(const Problem& problem, const void* data);

// Storage of an operand. Strides do not say it: if both strides are 1, the operand may be transposed or not,
// and this matters since BLAS conjugates only transposed operands.
struct OperandStorage {
  bool along_k = false;  // true: contiguous elements lie along k
  std::int64_t ld = 0;
};

OperandStorage operand_storage(const Problem& problem, Side side);

// Returns the candidates among which a device selects, in the form that the selection reads: in a checked
// plan the candidates that multiply slices, else all candidates. There must be at most
// DeviceReport::max_candidates.
DeviceCandidates candidates_on_device(const Plan& plan);
// The same for a plan for which has_long_chain() is true.
NormCandidates norm_candidates(const Plan& plan);

// Returns the split of an operand by a candidate, without memory, for the first block of C.
DeviceSplit device_split(const Plan& plan, const Candidate& candidate, Side side, const Blocking& blocking);

// Returns the shape of a candidate's products in one launch of a fused kernel.
DeviceShape fused_shape(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

}  // namespace kintsugi::core
