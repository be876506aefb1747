// Epilogues of cublasLtMatmul that are more than a bias.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::cublas {

// Numbers of cublasLtEpilogue_t. Forms with an auxiliary matrix stay cuBLAS's.
inline constexpr std::uint32_t epilogue_default = 1, epilogue_relu = 2, epilogue_bias = 4,
                               epilogue_relu_bias = epilogue_relu | epilogue_bias, epilogue_gelu = 32,
                               epilogue_gelu_bias = epilogue_gelu | epilogue_bias;

constexpr bool is_activation(std::uint32_t epilogue) {
  const std::uint32_t activation = epilogue & ~epilogue_bias;
  return activation == epilogue_relu || activation == epilogue_gelu;
}

// A matrix of FP32 whose elements await the epilogue of the description, and what the caller gave besides.
struct AwaitedEpilogue {
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

// Enqueues the epilogue: cuBLASLt applies it to D as to a product, of inner dimension 1 and of zeros, that is
// added to D. It reads and writes D once, and the function of GELU is cuBLAS's own. Returns the reason for
// which it is not enqueued, or nullptr.
const char* apply_epilogue(const AwaitedEpilogue& epilogue);

}  // namespace kintsugi::cublas
