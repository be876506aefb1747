// Matrices, operands and candidates of a call, in the form that the steps on a device use.
#pragma once

#include <cstdint>

#include "engines/cuda/step_data.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

struct DevicePrepared;  // execute/device/prepare.hpp

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

// Operands and result of a call.
struct DeviceOperands {
  DeviceMatrix a;
  DeviceMatrix b;
  DeviceMatrix c;
  DeviceScalars scalars;
  const DevicePrepared* prepared_a = nullptr;
  const DevicePrepared* prepared_b = nullptr;
  DeviceReport* report = nullptr;
};

// Returns the coefficient of |A||B| that norms must prove for every element of C.
double proved_coefficient(const Plan& plan);

// Returns the candidates among which a device selects, in the form that the selection reads: in a checked
// plan the candidates that multiply slices, else all candidates. There must be at most
// DeviceReport::max_candidates.
DeviceCandidates candidates_on_device(const Plan& plan);

}  // namespace kintsugi::core
