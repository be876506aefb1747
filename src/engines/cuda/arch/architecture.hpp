// Capability table of each GPU architecture: the engine's kernels for it, their tiles, and the accumulators
// of its matrix units. Costs are in profiles (profile.hpp). A new architecture is a table and a line of
// architectures.def (docs/ADDING-A-GPU.md).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/dmma_gemm.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_params.hpp"
#include "engines/cuda/step_data.hpp"
#include "formats/format.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// Kernels of one structure, one of each kind for each tile.
struct MultiTermKernels {
  std::span<const Term> terms;
  FormatId format;
  std::span<const MultiTermTile> tiles;
  std::array<TileTimes, 3> MultiTermCosts::*tile_times;  // where a device's costs have the times of `tiles`
  std::array<KernelName, 3> cluster_kernels;
  std::span<const SmallTile> small_tiles;
  std::array<KernelName, 3> small_kernels;
  std::array<KernelName, 3> segmented_kernels;  // small tiles whose segments are computed in parallel
};

// int8 GEMM kernels.
struct Int8Kernels {
  KernelName residues;        // sums are reduced modulo the groups' moduli
  KernelName short_residues;  // the same for sums in the range SumRange::int25
  KernelName integers;        // sums are 64-bit integers
};

// GEMM kernel for int8 slices with exponents per tile.
struct WeightedTileKernel {
  WeightedTile tile;
  int depth;  // inner indices of a tile along k
  KernelName kernel;

  // True if the kernel multiplies tiles of `tile_depth` inner indices. A kernel for tiles of a whole k-block
  // also multiplies tiles of half a k-block.
  constexpr bool takes(int tile_depth) const {
    return tile_depth == depth || (depth == WeightedTile::block && tile_depth == depth / 2);
  }
};

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
