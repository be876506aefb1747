// Splits of vectors whose elements are contiguous, for any device.
#include "engines/cuda/split/rows.cuh"

namespace kintsugi::core::cuda {

// `blocks` is the least number of thread blocks per SM: as many as registers allow without spills.
#define KINTSUGI_SPLIT_ROWS(name, Source, kind, blocks)                        \
  extern "C" __global__ void __launch_bounds__(rows_threads, blocks)           \
      split_##name##_##kind##_rows(const __grid_constant__ SplitTasks tasks) { \
    if (!begin_split(tasks)) return;                                           \
    std::int64_t block = blockIdx.x;                                           \
    const SplitTask& task = enter_task(tasks, block);                          \
    split_rows<Source, ElementKind::kind>(task, block);                        \
  }

KINTSUGI_SPLIT_ROWS(f32, float, fp16, 4)
KINTSUGI_SPLIT_ROWS(f32, float, fp16_with_depth, 4)
KINTSUGI_SPLIT_ROWS(f32, float, bf16, 4)
KINTSUGI_SPLIT_ROWS(f32, float, residues, 4)
KINTSUGI_SPLIT_ROWS(f64, double, residues, 4)
KINTSUGI_SPLIT_ROWS(f64, double, residues_by_norms, 3)

}  // namespace kintsugi::core::cuda
