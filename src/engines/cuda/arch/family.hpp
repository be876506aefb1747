// Table of each family of GPUs: the engine's kernels for it, their tiles, and the accumulator of its matrix
// units. The costs of its kernels are in profiles of its devices (profile.hpp). A new family is a folder of
// arch/ with its table, a folder of gemm/ with its main loops, and a line of families.def
// (docs/ADDING-A-GPU.md).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/dmma_gemm.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/gemm/mma_params.hpp"
#include "engines/cuda/gemm/simt_tiles.hpp"
#include "engines/cuda/gemm/weighted_tile_params.hpp"
#include "engines/cuda/step_data.hpp"
#include "formats/format.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// Multi-term GEMM kernels of one structure, one for each tile. A profile has the costs of its tiles under the
// structure's name. A family has either kernels with mma tiles or the others.
struct MultiTermKernels {
  std::string_view name;  // such as "fp16x3"
  std::span<const Term> terms;
  FormatId format;
  std::span<const MultiTermTile> tiles;  // at most max_cluster_tiles
  std::span<const KernelName> kernels;
  std::span<const SmallTile> small_tiles = {};  // the first ones of Family::small_tiles
  std::span<const KernelName> small_kernels = {};
  // Kernels of the first small tiles whose segments of k are computed in parallel.
  std::span<const KernelName> segmented_kernels = {};
  std::span<const MmaTile> mma_tiles = {};
  std::span<const KernelName> mma_kernels = {};

  // True if there are kernels for k-blocks of four sub-blocks.
  constexpr bool takes_four_sub_blocks() const { return !small_tiles.empty() || !mma_tiles.empty(); }
};

// int8 GEMM kernels.
struct Int8Kernels {
  KernelName residues;         // sums are reduced modulo the groups' moduli
  KernelName short_residues;   // the same for sums in the range SumRange::int25
  KernelName integers;         // sums are 64-bit integers
  bool has_mma_tiles = false;  // the kernels take Int8MmaParams, and their tile is Int8MmaTile
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

// Kernels that convert FP32 operands while they multiply (gemm/direct_params.hpp). Those of a tile are for
// rows and columns of the tile whose elements are contiguous along k (k) or not (m, n): kk, kn, mk, mn.
struct DirectKernels {
  using Layouts = std::array<KernelName, 4>;
  Layouts small;  // tiles of 32 rows
  Layouts large;  // of 64 rows
  // Tiles of 128 rows, and the same whose rows are columns of C. Families that have them have TMA.
  std::span<const Layouts> wide = {};
  // The wide tiles of many products in one launch, and the kernel that writes their parameters to memory
  // (gemm/direct_group_params.hpp).
  std::span<const Layouts> groups = {};
  const KernelName* prepare_groups = nullptr;
};

inline constexpr std::array cublas_accumulators{Accumulator::cublas};

struct Family {
  static constexpr int any = -1;  // matches every number

  std::string_view name;
  // Compute capability of the family's devices.
  int major = any;
  int minor = any;
  // True if the family's kernels were run on a device of its compute capability.
  bool was_run = false;

  // Name of a device-code image with GEMM kernels of the family. Empty: the family has no such kernels, and
  // cuBLAS multiplies all slices except 52-bit ones. A build for the GPUs of one machine may lack the image.
  std::string_view gemm_image = {};
  std::span<const MultiTermKernels> multi_term = {};  // at most max_structures
  const DirectKernels* direct = nullptr;
  const Int8Kernels* int8 = nullptr;
  std::span<const WeightedTileKernel> weighted_tiles = {};  // int8 slices with exponents per tile
  // Products of tiles that fail Eq. 9 (docs/schemes/mixpert.md). Kernels of weighted_tiles add their sums.
  const KernelName* failing_tiles = nullptr;
  // Products of fp16 slices of Ozaki scheme I (engines/cuda/ozaki1).
  const KernelName* slice_products = nullptr;
  // True if thread blocks can share their memory as a cluster. Then splits read columns only once.
  bool has_clusters = false;
  // True if kernels that are compiled at run time may multiply by wgmma (gemm/term_sums_wgmma.cuh).
  bool has_wgmma = false;
  // Most shared memory of a thread block that the library uses. The device's own limit also holds.
  std::int64_t max_shared_bytes = std::numeric_limits<std::int64_t>::max();

  // Accumulators of fp16 and bf16 products. The preferred one is first, cuBLAS's is last.
  std::span<const Accumulator> fp16_bf16_accumulators = cublas_accumulators;
  // Rate of products of 52-bit slices divided by the rate of native FP32 products. Such a product is two
  // 64-bit multiplications on 32-bit units: some 32 instructions.
  double int52_rate = 1.0 / 32;

  // Tiles of the SIMT kernels, indexed by ElementType, in the order of the kernels.
  std::array<std::span<const SimtTile>, 4> simt_tiles = {simt_tiles_f32, simt_tiles_f64, simt_tiles_c32,
                                                         simt_tiles_c64};

  // True if the family stands for cards for graphics where the setting `arch` names it.
  bool has_few_fp64_units = false;

  // Kernels for FP64 elements on tensor cores, indexed by ElementType. nullptr: the SIMT kernels multiply.
  std::array<const DmmaKernels*, 4> dmma = {};

  DeviceThresholds thresholds = {};

  constexpr bool matches(int device_major, int device_minor) const {
    return (major == any || major == device_major) && (minor == any || minor == device_minor);
  }
  // True if the library has the family's product kernels.
  bool has_gemm_kernels() const;
  // fp16_bf16_accumulators without those whose product kernels the library lacks.
  std::span<const Accumulator> available_fp16_bf16_accumulators() const;
  // Returns the DMMA kernels for a type; nullptr if there are none or the library lacks them.
  const DmmaKernels* available_dmma(ElementType type) const;
};

// First table of families.def that matches; the last one matches every device.
const Family& family_of(int major, int minor);

// Table with that name; nullptr if there is none.
const Family* find_family(std::string_view name);

// Table of the calling thread's current device; without a device the last table. If the setting `arch` names
// a family, its table with the accumulators of the device's own: these belong to the matrix units.
const Family& current_family();
// True if the setting `arch` names a family.
bool is_family_forced();
// Forgets the setting's value, which is read once.
void reread_family_setting();

// Most shared memory that a thread block may have on the current device.
std::int64_t max_shared_bytes_of_block();

}  // namespace kintsugi::core::cuda
