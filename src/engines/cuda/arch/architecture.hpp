// Capability table of each GPU architecture: the engine's kernels for it, their tiles, and the accumulators
// of its matrix units. Costs are in profiles (profile.hpp). A new architecture is a table and a line of
// architectures.def (docs/ADDING-A-GPU.md).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "engines/cuda/gemm/dmma/dmma_kernels.hpp"
#include "engines/cuda/gemm/int8/int8_kernels.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_kernels.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_kernels.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

struct Architecture {
  static constexpr int any = -1;  // matches every number

  std::string_view name;
  // Compute capability of the architecture's devices.
  int major = any;
  int minor = any;

  // Name of the device-code image with the GEMM kernels. Empty: the architecture has no such kernels, and
  // cuBLAS multiplies all slices except 52-bit ones. A build for the GPUs of one machine may lack the image.
  std::string_view gemm_image = {};
  std::span<const MultiTermKernels> multi_term = {};
  const Int8Kernels* int8 = nullptr;
  std::span<const WeightedTileKernel> weighted_tiles = {};  // int8 slices with exponents per tile
  // True if thread blocks can share their memory as a cluster. Then splits read columns only once.
  bool has_clusters = false;

  // Accumulators of fp16 and bf16 products. The preferred one is first, cuBLAS's is last.
  std::span<const Accumulator> fp16_bf16_accumulators;
  // Rate of products of 52-bit slices divided by the rate of native FP32 products.
  double int52_rate = 0;

  // Tiles of the SIMT kernels, indexed by ElementType, in the order of the kernels.
  std::array<std::span<const SimtTile>, 4> simt_tiles;

  // True if there is a kernel with which a cluster shares the products of a tile
  // (gemm/simt/simt_split_sm90a.cu).
  bool has_simt_split_kernel = false;

  // Kernels for FP64 elements on tensor cores, indexed by ElementType. nullptr: the SIMT kernels multiply.
  std::array<const DmmaKernels*, 4> dmma = {};

  DeviceThresholds thresholds = {};

  constexpr bool matches(int device_major, int device_minor) const {
    return (major == any || major == device_major) && (minor == any || minor == device_minor);
  }
  // True if the library has the architecture's product kernels.
  bool has_gemm_kernels() const;
  // fp16_bf16_accumulators without those whose product kernels the library lacks.
  std::span<const Accumulator> available_fp16_bf16_accumulators() const;
  // has_simt_split_kernel, but false if the library lacks the kernel.
  bool has_simt_split() const;
  // Returns the DMMA kernels for a type; nullptr if there are none or the library lacks them.
  const DmmaKernels* available_dmma(ElementType type) const;
};

// First table of architectures.def that matches; the last one matches every device.
const Architecture& architecture_of(int major, int minor);

// Table of the calling thread's current device; without a device the last table.
const Architecture& current_architecture();

}  // namespace kintsugi::core::cuda
