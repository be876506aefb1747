// Fields of a call that leave the call to cuBLAS, for the report.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace kintsugi::cublas {

enum class Field : std::uint8_t {
  none,
  groups,        // groups of complex matrices
  descriptors,   // a null descriptor of cublasLt
  scalars,       // alpha or beta is null
  types,         // values: cudaDataType_t of A, B and C or D
  compute_type,  // value: cublasComputeType_t
  scale_type,    // value: cudaDataType_t
  algorithm,
  pointer_mode,
  order,    // values: cublasLtOrder_t of A, B and D
  batch,    // values: batch counts of A, B and D
  sizes,    // the layouts' rows and columns do not fit each other
  c,        // C is read and is not D
  epilogue  // value: cublasLtEpilogue_t
};

struct Unsupported {
  Field field = Field::none;
  std::array<std::int64_t, 3> values = {};
  const char* detail = "";  // follows the text
};

// Returns the reason as the report has it, such as "epilogue GELU_AUX" or "compute type
// CUBLAS_COMPUTE_32F_FAST_TF32".
std::string reason_of(const Unsupported& unsupported);

}  // namespace kintsugi::cublas
