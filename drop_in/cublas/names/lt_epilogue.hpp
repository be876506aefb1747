// Epilogues of cublasLtMatmul with an activation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::cublas {

// Numbers of cublasLtEpilogue_t. Calls with other epilogues, such as those with an auxiliary matrix, are
// forwarded.
inline constexpr std::uint32_t epilogue_default = 1, epilogue_relu = 2, epilogue_bias = 4,
                               epilogue_relu_bias = epilogue_relu | epilogue_bias, epilogue_gelu = 32,
                               epilogue_gelu_bias = epilogue_gelu | epilogue_bias;

constexpr bool is_activation(std::uint32_t epilogue) {
  const std::uint32_t activation = epilogue & ~epilogue_bias;
  return activation == epilogue_relu || activation == epilogue_gelu;
}

// Arguments for an epilogue. `d` is the FP32 matrix D, which holds the product. `description` is the call's
// description, which names the epilogue. The others are further arguments of the call.
struct PendingEpilogue {
  void* handle;
  const void* description;
  int op_a, op_b;
  std::int64_t m, n;
  void* d;
  const void* layout_d;
  void* workspace;
  std::size_t workspace_bytes;
  void* stream;
  int device;
};

// Enqueues the epilogue as a product of cuBLASLt: matrices of zeros with few inner indices are multiplied and
// their product added to D, and cuBLASLt applies the epilogue to the sum. D is read and written once, and
// GELU is computed as cuBLAS does. Returns the reason for which nothing was enqueued; nullptr: there is none.
const char* apply_epilogue(const PendingEpilogue& epilogue);

}  // namespace kintsugi::cublas
