// Hopper, compute capability 9.0. Its kernels use TMA and wgmma and run on no other architecture.
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_structures.hpp"

namespace kintsugi::core::cuda {

const Architecture& sm90_architecture();

namespace {

#define KINTSUGI_KERNEL(name) \
  KernelName { "multi_term_sm90a", name, waits_for_grid_dependency }
#define KINTSUGI_SMALL_KERNEL(name) \
  KernelName { "multi_term_small_sm90a", name, waits_for_grid_dependency }
const std::array<MultiTermKernels, 3> multi_term_kernels{
    {{.terms = fp16x3_structure.terms,
      .format = FormatId::fp16,
      .tiles = joined_tiles,
      .tile_times = &MultiTermCosts::joined_tiles,
      .cluster_kernels = {KINTSUGI_KERNEL("fp16_terms_192"), KINTSUGI_KERNEL("fp16_terms_128"),
                          KINTSUGI_KERNEL("fp16_terms_64")},
      .small_tiles = small_tiles,
      .small_kernels = {KINTSUGI_SMALL_KERNEL("fp16_small_tiles_32"),
                        KINTSUGI_SMALL_KERNEL("fp16_small_tiles_64"),
                        KINTSUGI_SMALL_KERNEL("fp16_small_tiles_128")},
      .segmented_kernels = {KINTSUGI_SMALL_KERNEL("fp16_segmented_tiles_32"),
                            KINTSUGI_SMALL_KERNEL("fp16_segmented_tiles_64"),
                            KINTSUGI_SMALL_KERNEL("fp16_segmented_tiles_128")}},
     {.terms = fp16x3_wide_structure.terms,
      .format = FormatId::fp16,
      .tiles = rescaled_tiles,
      .tile_times = &MultiTermCosts::rescaled_tiles,
      .cluster_kernels = {KINTSUGI_KERNEL("fp16_rescaled_terms_192"),
                          KINTSUGI_KERNEL("fp16_rescaled_terms_128"),
                          KINTSUGI_KERNEL("fp16_rescaled_terms_64")},
      .small_tiles = small_tiles,
      .small_kernels = {KINTSUGI_SMALL_KERNEL("fp16_rescaled_small_tiles_32"),
                        KINTSUGI_SMALL_KERNEL("fp16_rescaled_small_tiles_64"),
                        KINTSUGI_SMALL_KERNEL("fp16_rescaled_small_tiles_128")},
      .segmented_kernels = {KINTSUGI_SMALL_KERNEL("fp16_rescaled_segmented_tiles_32"),
                            KINTSUGI_SMALL_KERNEL("fp16_rescaled_segmented_tiles_64"),
                            KINTSUGI_SMALL_KERNEL("fp16_rescaled_segmented_tiles_128")}},
     {.terms = bf16x6_structure.terms,
      .format = FormatId::bf16,
      .tiles = six_term_tiles,
      .tile_times = &MultiTermCosts::six_term_tiles,
      .cluster_kernels = {KINTSUGI_KERNEL("bf16_six_terms_128"), KINTSUGI_KERNEL("bf16_six_terms_64"),
                          KINTSUGI_KERNEL("")},  // there is no third tile; empty names fill the arrays
      .small_tiles = {},
      .small_kernels = {KINTSUGI_KERNEL(""), KINTSUGI_KERNEL(""), KINTSUGI_KERNEL("")},
      .segmented_kernels = {KINTSUGI_KERNEL(""), KINTSUGI_KERNEL(""), KINTSUGI_KERNEL("")}}}};
#undef KINTSUGI_KERNEL
#undef KINTSUGI_SMALL_KERNEL

const Int8Kernels int8_kernels{
    .residues = {"int8_sm90a", "residue_products", waits_for_grid_dependency},
    .short_residues = {"int8_sm90a", "short_residue_products", waits_for_grid_dependency},
    .integers = {"int8_sm90a", "integer_products", waits_for_grid_dependency}};

#define KINTSUGI_WEIGHTED_TILES(slices_a, slices_b, depth)                          \
  {                                                                                 \
    weighted_tile(slices_a, slices_b, depth), depth, {                              \
      "weighted_tiles_" #depth "_sm90a", "weighted_tiles_" #slices_a "_" #slices_b, \
          waits_for_grid_dependency                                                 \
    }                                                                               \
  }
#define KINTSUGI_WEIGHTED_TILES_OF_DEPTH(depth)                                   \
  KINTSUGI_WEIGHTED_TILES(2, 2, depth), KINTSUGI_WEIGHTED_TILES(2, 3, depth),     \
      KINTSUGI_WEIGHTED_TILES(3, 2, depth), KINTSUGI_WEIGHTED_TILES(3, 3, depth), \
      KINTSUGI_WEIGHTED_TILES(4, 4, depth)
// Tiles of 32 inner indices are those of the paper. Tiles of 128 take the shortest time
// (docs/design/kernels.md).
const std::array<WeightedTileKernel, 10> weighted_tile_kernels{
    {KINTSUGI_WEIGHTED_TILES_OF_DEPTH(32), KINTSUGI_WEIGHTED_TILES_OF_DEPTH(128)}};
#undef KINTSUGI_WEIGHTED_TILES_OF_DEPTH
#undef KINTSUGI_WEIGHTED_TILES

#define KINTSUGI_DMMA(name) \
  KernelName { "dmma_gemm_sm90a", name, waits_for_grid_dependency }
const std::array<KernelName, 4> dmma_f64_along_k{
    {KINTSUGI_DMMA("dmma_f64_128x128_k"), KINTSUGI_DMMA("dmma_f64_128x64_k"),
     KINTSUGI_DMMA("dmma_f64_64x64_k"), KINTSUGI_DMMA("dmma_f64_32x32_k")}};
const std::array<KernelName, 4> dmma_f64_in_panels{
    {KINTSUGI_DMMA("dmma_f64_128x128_n"), KINTSUGI_DMMA("dmma_f64_128x64_n"),
     KINTSUGI_DMMA("dmma_f64_64x64_n"), KINTSUGI_DMMA("dmma_f64_32x32_n")}};
const std::array<KernelName, 3> dmma_c64_along_k{
    {KINTSUGI_DMMA("dmma_c64_128x64"), KINTSUGI_DMMA("dmma_c64_64x32"), KINTSUGI_DMMA("dmma_c64_32x32")}};
#undef KINTSUGI_DMMA
const DmmaKernels dmma_f64{
    .tiles = dmma_tiles_f64, .along_k = dmma_f64_along_k, .in_panels = dmma_f64_in_panels};
const DmmaKernels dmma_c64{.tiles = dmma_tiles_c64, .along_k = dmma_c64_along_k, .in_panels = {}};

}  // namespace

const Architecture& sm90_architecture() {
  static constexpr std::array accumulators{Accumulator::h200, Accumulator::cublas};
  static const Architecture table{
      .name = "sm90",
      .major = 9,
      .minor = 0,
      .gemm_image = "multi_term_sm90a",
      .multi_term = multi_term_kernels,
      .int8 = &int8_kernels,
      .weighted_tiles = weighted_tile_kernels,
      .has_clusters = true,
      .fp16_bf16_accumulators = accumulators,
      .int52_rate = 1.0 / 32,
      .simt_tiles = {simt_tiles_f32, simt_tiles_f64, simt_tiles_c32, simt_tiles_c64},
      .has_simt_split_kernel = true,
      .dmma = {nullptr, &dmma_f64, nullptr, &dmma_c64}};
  return table;
}

}  // namespace kintsugi::core::cuda
