// Splits of vectors whose elements are contiguous, for any device.
#include "engines/cuda/split/rows.cuh"

namespace kintsugi::core::cuda {

// `blocks` is the least number of thread blocks per SM: as many as registers allow without spills.
#define KINTSUGI_SPLIT_ROWS(Source, kind, blocks)                              \
  extern "C" __global__ void __launch_bounds__(rows_threads, blocks)           \
      split_rows_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    if (!begin_split(tasks)) return;                                           \
    std::int64_t block = blockIdx.x;                                           \
    const SplitTask& task = enter_task(tasks, block);                          \
    split_rows<Source, ElementKind::kind>(task, block);                        \
  }

KINTSUGI_SPLIT_ROWS(float, fp16, 4)
KINTSUGI_SPLIT_ROWS(float, fp16_with_depth, 4)
KINTSUGI_SPLIT_ROWS(float, bf16, 4)
KINTSUGI_SPLIT_ROWS(float, tf32, 4)
KINTSUGI_SPLIT_ROWS(float, quantised, 4)
KINTSUGI_SPLIT_ROWS(float, digits, 3)
KINTSUGI_SPLIT_ROWS(float, residues, 4)
KINTSUGI_SPLIT_ROWS(double, digits, 3)
KINTSUGI_SPLIT_ROWS(double, residues, 4)
KINTSUGI_SPLIT_ROWS(double, residues_by_norms, 3)
KINTSUGI_SPLIT_ROWS(double, wide_residues, 4)

}  // namespace kintsugi::core::cuda
