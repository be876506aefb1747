// Parameters of the kernel that multiplies 52-bit words.
#pragma once

#include <cstdint>

#include "recombine/accumulators.hpp"

namespace kintsugi::core::cuda {

// Operands and sums. Group g is the sum over s of the products of slice s of A and slice g - s of B.
struct WordProducts {
  const std::int64_t* a = nullptr;
  const std::int64_t* b = nullptr;
  std::int64_t slice_stride_a = 0;
  std::int64_t slice_stride_b = 0;
  std::int64_t vector_stride = 0;  // stride of both operands
  std::int32_t words = 0;          // number of slices of each operand
  Integer128* sums = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

}  // namespace kintsugi::core::cuda
