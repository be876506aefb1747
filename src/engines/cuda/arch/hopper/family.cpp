// Hopper, compute capability 9.0. Its kernels (gemm/hopper) use TMA and wgmma and run on no other family.
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/hopper/tiles.hpp"
#include "engines/cuda/gemm/direct_params.hpp"
#include "engines/cuda/gemm/multi_term_structures.hpp"

namespace kintsugi::core::cuda {

const Family& hopper_family();

namespace {

#define KINTSUGI_KERNEL(name) \
  KernelName { "multi_term_sm90a", name, waits_for_grid_dependency }
const std::array<KernelName, 3> fp16x3_kernels{{KINTSUGI_KERNEL("multiply_f32_fp16x3_256x192"),
                                                KINTSUGI_KERNEL("multiply_f32_fp16x3_256x128"),
                                                KINTSUGI_KERNEL("multiply_f32_fp16x3_256x64")}};
const std::array<KernelName, 2> fp16x3_wide_kernels{{KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_256x192"),
                                                     KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_256x128")}};
const std::array<KernelName, 2> bf16x6_kernels{
    {KINTSUGI_KERNEL("multiply_f32_bf16x6_256x128"), KINTSUGI_KERNEL("multiply_f32_bf16x6_256x64")}};
#undef KINTSUGI_KERNEL

#define KINTSUGI_KERNEL(name) \
  KernelName { "multi_term_small_sm90a", name, waits_for_grid_dependency }
const std::array<KernelName, 3> fp16x3_small_kernels{{KINTSUGI_KERNEL("multiply_f32_fp16x3_64x32"),
                                                      KINTSUGI_KERNEL("multiply_f32_fp16x3_64x64"),
                                                      KINTSUGI_KERNEL("multiply_f32_fp16x3_64x128")}};
const std::array<KernelName, 2> fp16x3_segmented_kernels{
    {KINTSUGI_KERNEL("multiply_f32_fp16x3_64x32_segments"),
     KINTSUGI_KERNEL("multiply_f32_fp16x3_64x64_segments")}};
const std::array<KernelName, 3> fp16x3_wide_small_kernels{
    {KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_64x32"), KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_64x64"),
     KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_64x128")}};
const std::array<KernelName, 2> fp16x3_wide_segmented_kernels{
    {KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_64x32_segments"),
     KINTSUGI_KERNEL("multiply_f32_fp16x3_wide_64x64_segments")}};
#undef KINTSUGI_KERNEL

const std::array multi_term_kernels{MultiTermKernels{.name = "fp16x3",
                                                     .terms = fp16x3_structure.terms,
                                                     .format = FormatId::fp16,
                                                     .tiles = hopper::fp16x3_tiles,
                                                     .kernels = fp16x3_kernels,
                                                     .small_tiles = hopper::small_tiles,
                                                     .small_kernels = fp16x3_small_kernels,
                                                     .segmented_kernels = fp16x3_segmented_kernels},
                                    MultiTermKernels{.name = "fp16x3-wide",
                                                     .terms = fp16x3_wide_structure.terms,
                                                     .format = FormatId::fp16,
                                                     .tiles = hopper::fp16x3_wide_tiles,
                                                     .kernels = fp16x3_wide_kernels,
                                                     .small_tiles = hopper::small_tiles,
                                                     .small_kernels = fp16x3_wide_small_kernels,
                                                     .segmented_kernels = fp16x3_wide_segmented_kernels},
                                    MultiTermKernels{.name = "bf16x6",
                                                     .terms = bf16x6_structure.terms,
                                                     .format = FormatId::bf16,
                                                     .tiles = hopper::bf16x6_tiles,
                                                     .kernels = bf16x6_kernels}};

const std::array<DirectKernels::Layouts, 2> wide_direct_kernels{
    {{{{"direct_wgmma_sm90a", "multiply_f32_direct_128x64_kk", waits_for_grid_dependency},
       {"direct_wgmma_sm90a", "multiply_f32_direct_128x64_kn", waits_for_grid_dependency},
       {"direct_wgmma_sm90a", "multiply_f32_direct_128x64_mk", waits_for_grid_dependency},
       {"direct_wgmma_sm90a", "multiply_f32_direct_128x64_mn", waits_for_grid_dependency}}},
     {{{"direct_wgmma_sm90a", "multiply_f32_direct_128x64_swapped_kk", waits_for_grid_dependency},
       {"direct_wgmma_sm90a", "multiply_f32_direct_128x64_swapped_kn", waits_for_grid_dependency},
       {"direct_wgmma_sm90a", "multiply_f32_direct_128x64_swapped_mk", waits_for_grid_dependency},
       {"direct_wgmma_sm90a", "multiply_f32_direct_128x64_swapped_mn", waits_for_grid_dependency}}}}};
const std::array<DirectKernels::Layouts, 2> group_direct_kernels{
    {{{{"direct_groups_sm90a", "multiply_f32_direct_groups_kk", waits_for_grid_dependency},
       {"direct_groups_sm90a", "multiply_f32_direct_groups_kn", waits_for_grid_dependency},
       {"direct_groups_sm90a", "multiply_f32_direct_groups_mk", waits_for_grid_dependency},
       {"direct_groups_sm90a", "multiply_f32_direct_groups_mn", waits_for_grid_dependency}}},
     {{{"direct_groups_sm90a", "multiply_f32_direct_groups_swapped_kk", waits_for_grid_dependency},
       {"direct_groups_sm90a", "multiply_f32_direct_groups_swapped_kn", waits_for_grid_dependency},
       {"direct_groups_sm90a", "multiply_f32_direct_groups_swapped_mk", waits_for_grid_dependency},
       {"direct_groups_sm90a", "multiply_f32_direct_groups_swapped_mn", waits_for_grid_dependency}}}}};
const KernelName prepare_direct_groups{"direct_groups_sm90a", "prepare_direct_products",
                                       waits_for_grid_dependency};
const DirectKernels direct_kernels{
    .small = {{{"direct_mma_32x32", "multiply_f32_direct_mma_32x32_kk", waits_for_grid_dependency},
               {"direct_mma_32x32", "multiply_f32_direct_mma_32x32_kn", waits_for_grid_dependency},
               {"direct_mma_32x32", "multiply_f32_direct_mma_32x32_mk", waits_for_grid_dependency},
               {"direct_mma_32x32", "multiply_f32_direct_mma_32x32_mn", waits_for_grid_dependency}}},
    .large = {{{"direct_mma_64x64", "multiply_f32_direct_mma_64x64_kk", waits_for_grid_dependency},
               {"direct_mma_64x64", "multiply_f32_direct_mma_64x64_kn", waits_for_grid_dependency},
               {"direct_mma_64x64", "multiply_f32_direct_mma_64x64_mk", waits_for_grid_dependency},
               {"direct_mma_64x64", "multiply_f32_direct_mma_64x64_mn", waits_for_grid_dependency}}},
    .wide = wide_direct_kernels,
    .groups = group_direct_kernels,
    .prepare_groups = &prepare_direct_groups};

const Int8Kernels int8_kernels{
    .residues = {"int8_sm90a", "multiply_int8_residues", waits_for_grid_dependency},
    .short_residues = {"int8_sm90a", "multiply_int8_residues_short", waits_for_grid_dependency},
    .integers = {"int8_sm90a", "multiply_int8_integers", waits_for_grid_dependency}};

// Tiles of 32 inner indices are those of the paper. Tiles of 128 take the shortest time
// (docs/design/kernels.md).
const std::array<WeightedTileKernel, 10> weighted_tile_kernels{
    {{weighted_tile(2, 2, 32),
      32,
      {"weighted_tiles_32_sm90a", "multiply_f32_weighted_2x2_32", waits_for_grid_dependency}},
     {weighted_tile(2, 3, 32),
      32,
      {"weighted_tiles_32_sm90a", "multiply_f32_weighted_2x3_32", waits_for_grid_dependency}},
     {weighted_tile(3, 2, 32),
      32,
      {"weighted_tiles_32_sm90a", "multiply_f32_weighted_3x2_32", waits_for_grid_dependency}},
     {weighted_tile(3, 3, 32),
      32,
      {"weighted_tiles_32_sm90a", "multiply_f32_weighted_3x3_32", waits_for_grid_dependency}},
     {weighted_tile(4, 4, 32),
      32,
      {"weighted_tiles_32_sm90a", "multiply_f32_weighted_4x4_32", waits_for_grid_dependency}},
     {weighted_tile(2, 2, 128),
      128,
      {"weighted_tiles_128_sm90a", "multiply_f32_weighted_2x2_128", waits_for_grid_dependency}},
     {weighted_tile(2, 3, 128),
      128,
      {"weighted_tiles_128_sm90a", "multiply_f32_weighted_2x3_128", waits_for_grid_dependency}},
     {weighted_tile(3, 2, 128),
      128,
      {"weighted_tiles_128_sm90a", "multiply_f32_weighted_3x2_128", waits_for_grid_dependency}},
     {weighted_tile(3, 3, 128),
      128,
      {"weighted_tiles_128_sm90a", "multiply_f32_weighted_3x3_128", waits_for_grid_dependency}},
     {weighted_tile(4, 4, 128),
      128,
      {"weighted_tiles_128_sm90a", "multiply_f32_weighted_4x4_128", waits_for_grid_dependency}}}};
const KernelName failing_tiles_kernel{"failing_tiles_sm90a", "multiply_f32_failing_tiles",
                                      waits_for_grid_dependency};
const KernelName slice_products_kernel{"slice_products_sm90a", "add_slice_products",
                                       waits_for_grid_dependency};

#define KINTSUGI_KERNEL(name) \
  KernelName { "dmma_sm90a", name, waits_for_grid_dependency }
const std::array<KernelName, 3> dmma_f64_along_k{{KINTSUGI_KERNEL("multiply_f64_dmma_128x128_k"),
                                                  KINTSUGI_KERNEL("multiply_f64_dmma_64x64_k"),
                                                  KINTSUGI_KERNEL("multiply_f64_dmma_32x32_k")}};
const std::array<KernelName, 3> dmma_f64_in_panels{{KINTSUGI_KERNEL("multiply_f64_dmma_128x128_n"),
                                                    KINTSUGI_KERNEL("multiply_f64_dmma_64x64_n"),
                                                    KINTSUGI_KERNEL("multiply_f64_dmma_32x32_n")}};
const std::array<KernelName, 3> dmma_c64_along_k{{KINTSUGI_KERNEL("multiply_c64_dmma_128x64"),
                                                  KINTSUGI_KERNEL("multiply_c64_dmma_64x32"),
                                                  KINTSUGI_KERNEL("multiply_c64_dmma_32x32")}};
#undef KINTSUGI_KERNEL
const DmmaKernels dmma_f64{
    .tiles = hopper::dmma_tiles_f64, .along_k = dmma_f64_along_k, .in_panels = dmma_f64_in_panels};
const DmmaKernels dmma_c64{.tiles = hopper::dmma_tiles_c64, .along_k = dmma_c64_along_k, .in_panels = {}};

}  // namespace

const Family& hopper_family() {
  static constexpr std::array accumulators{Accumulator::h200, Accumulator::cublas};
  static const Family table{.name = "hopper",
                            .major = 9,
                            .minor = 0,
                            .was_run = true,
                            .gemm_image = "multi_term_sm90a",
                            .multi_term = multi_term_kernels,
                            .direct = &direct_kernels,
                            .int8 = &int8_kernels,
                            .weighted_tiles = weighted_tile_kernels,
                            .failing_tiles = &failing_tiles_kernel,
                            .slice_products = &slice_products_kernel,
                            .has_clusters = true,
                            .has_wgmma = true,
                            .fp16_bf16_accumulators = accumulators,
                            .dmma = {nullptr, &dmma_f64, nullptr, &dmma_c64}};
  return table;
}

}  // namespace kintsugi::core::cuda
