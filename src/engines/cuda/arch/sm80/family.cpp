// Compute capability 8.0. The kernels (gemm/sm80) multiply by mma.sync and copy by cp.async; they run on
// every GPU from 8.0 on. They were run on compute capability 9.0 alone, where KINTSUGI_ARCH=sm80 selects
// them.
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/sm80/tiles.hpp"
#include "engines/cuda/gemm/direct_params.hpp"
#include "engines/cuda/gemm/multi_term_structures.hpp"

namespace kintsugi::core::cuda {

const Family& sm80_family();

namespace {

const std::array<KernelName, 3> fp16x3_kernels{
    {{"multi_term_fp16x3", "multiply_f32_fp16x3_mma_128x128", waits_for_grid_dependency},
     {"multi_term_fp16x3", "multiply_f32_fp16x3_mma_128x64", waits_for_grid_dependency},
     {"multi_term_fp16x3_64x64", "multiply_f32_fp16x3_mma_64x64", waits_for_grid_dependency}}};

const std::array<KernelName, 3> fp16x3_wide_kernels{
    {{"multi_term_fp16x3_wide", "multiply_f32_fp16x3_wide_mma_128x128", waits_for_grid_dependency},
     {"multi_term_fp16x3_wide", "multiply_f32_fp16x3_wide_mma_128x64", waits_for_grid_dependency},
     {"multi_term_fp16x3_wide_64x64", "multiply_f32_fp16x3_wide_mma_64x64", waits_for_grid_dependency}}};
const std::array<KernelName, 1> bf16x6_kernels{
    {{"multi_term_bf16x6", "multiply_f32_bf16x6_mma_64x64", waits_for_grid_dependency}}};

MultiTermKernels mma_kernels(std::string_view name, std::span<const Term> terms, FormatId format,
                             std::span<const MmaTile> tiles, std::span<const KernelName> kernels) {
  MultiTermKernels found{.name = name, .terms = terms, .format = format, .tiles = {}, .kernels = {}};
  found.mma_tiles = tiles;
  found.mma_kernels = kernels;
  return found;
}
const std::array multi_term_kernels{
    mma_kernels("fp16x3", fp16x3_structure.terms, FormatId::fp16, sm80::multi_term_tiles, fp16x3_kernels),
    mma_kernels("fp16x3-wide", fp16x3_wide_structure.terms, FormatId::fp16, sm80::multi_term_tiles,
                fp16x3_wide_kernels),
    mma_kernels("bf16x6", bf16x6_structure.terms, FormatId::bf16, sm80::small_tiles, bf16x6_kernels)};

const DirectKernels direct_kernels{
    .small = {{{"direct_mma_32x32", "multiply_f32_direct_mma_32x32_kk", waits_for_grid_dependency},
               {"direct_mma_32x32", "multiply_f32_direct_mma_32x32_kn", waits_for_grid_dependency},
               {"direct_mma_32x32", "multiply_f32_direct_mma_32x32_mk", waits_for_grid_dependency},
               {"direct_mma_32x32", "multiply_f32_direct_mma_32x32_mn", waits_for_grid_dependency}}},
    .large = {{{"direct_mma_64x64", "multiply_f32_direct_mma_64x64_kk", waits_for_grid_dependency},
               {"direct_mma_64x64", "multiply_f32_direct_mma_64x64_kn", waits_for_grid_dependency},
               {"direct_mma_64x64", "multiply_f32_direct_mma_64x64_mk", waits_for_grid_dependency},
               {"direct_mma_64x64", "multiply_f32_direct_mma_64x64_mn", waits_for_grid_dependency}}}};

const Int8Kernels int8_kernels{
    .residues = {"int8_mma", "multiply_int8_mma_residues", waits_for_grid_dependency},
    .short_residues = {"int8_mma", "multiply_int8_mma_residues", waits_for_grid_dependency},
    .integers = {"int8_mma", "multiply_int8_mma_integers", waits_for_grid_dependency},
    .has_mma_tiles = true};

}  // namespace

const Family& sm80_family() {
  static constexpr std::array accumulators{Accumulator::a100, Accumulator::cublas};
  static const Family table{.name = "sm80",
                            .major = 8,
                            .minor = 0,
                            .gemm_image = "multi_term_fp16x3",
                            .multi_term = multi_term_kernels,
                            .direct = &direct_kernels,
                            .int8 = &int8_kernels,
                            .max_shared_bytes = 163 << 10,
                            .fp16_bf16_accumulators = accumulators};
  return table;
}

}  // namespace kintsugi::core::cuda
