// Splits of vectors whose elements lie beside each other: a block reads a vector once and holds it in shared memory.
#include "engines/cuda/splits/elements.cuh"
#include "engines/cuda/splits/operands.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int group = 4;    // elements that a thread reads together
constexpr int written = 8;  // and writes

// Whole 16 bytes at a time where the vector is aligned.
template <class Source>
__device__ void read_group(const Source* source, std::int64_t left, bool aligned, Source (&x)[group]) {
  if (aligned && left >= group) {
    constexpr int words = group * sizeof(Source) / sizeof(uint4);
    uint4 bits[words];
#pragma unroll
    for (int i = 0; i < words; ++i) bits[i] = __ldg(reinterpret_cast<const uint4*>(source) + i);
    memcpy(x, bits, sizeof bits);
    return;
  }
#pragma unroll
  for (int i = 0; i < group; ++i) x[i] = i < left ? __ldg(source + i) : Source(0);
}

template <class Source>
__device__ void keep_group(const Source (&x)[group], Source* target) {
  constexpr int words = group * sizeof(Source) / sizeof(uint4);
  uint4 bits[words];
  memcpy(bits, x, sizeof bits);
#pragma unroll
  for (int i = 0; i < words; ++i) reinterpret_cast<uint4*>(target)[i] = bits[i];
}

// The vector into shared memory, zeros behind it; the magnitudes are this thread's.
template <class Source>
__device__ Magnitudes<Source> load_vector(const Source* source, const SplitTask& task, Source* row) {
  constexpr int unrolled = 64 / (group * sizeof(Source));  // 64 bytes of a thread are on their way together
  Magnitudes<Source> magnitudes;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0;
  const int groups = static_cast<int>(task.vector_stride / group);
  const int step = static_cast<int>(blockDim.x);
  for (int begin = static_cast<int>(threadIdx.x); begin < groups; begin += unrolled * step) {
    Source x[unrolled][group];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const std::int64_t p = static_cast<std::int64_t>(begin + u * step) * group;
      read_group(source + p, task.length - p, aligned, x[u]);
    }
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      magnitudes.add(x[u]);
      if (begin + u * step < groups) keep_group(x[u], row + (begin + u * step) * group);
    }
  }
  return magnitudes;
}

// The block's magnitudes; whole in thread 0.
template <class Source>
__device__ Magnitudes<Source> block_magnitudes(Magnitudes<Source> magnitudes) {
  __shared__ Magnitudes<Source> of_warp[rows_threads / 32];
  add_over_lanes(magnitudes, 31);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = magnitudes;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) magnitudes.add(of_warp[warp]);
  }
  return magnitudes;
}

__device__ void clear_vector(const SplitTask& task, std::int64_t vector) {
  for (std::int64_t p = threadIdx.x * group; p < task.vector_stride; p += blockDim.x * group)
    write_zeros<group>(task, vector * task.vector_stride + p);
}

template <class Source, ElementKind kind>
__device__ void split_vector(const SplitTask& task, std::int64_t vector) {
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling shared_scaling;
  auto* row = reinterpret_cast<Source*>(memory);
  const Source* source =
      matrix_start<Source>(task.matrix, task.entry) + (task.first + vector) * task.matrix.row_stride;
  const Magnitudes<Source> magnitudes = block_magnitudes(load_vector(source, task, row));
  if (threadIdx.x == 0) shared_scaling = finish_range(task, kind, vector, magnitudes.range());
  __syncthreads();
  const VectorWriter<kind> writer(task, shared_scaling, vector);
  const int stride = static_cast<int>(task.vector_stride);
  for (int p = static_cast<int>(threadIdx.x) * written; p < stride;
       p += static_cast<int>(blockDim.x) * written)
    writer.template write<written, 1, true>(row + p, p);
}

template <class Source, ElementKind kind>
__device__ void split_rows(const SplitTasks& tasks) {
  if (is_left_out(tasks.condition)) return;
  std::int64_t vector = blockIdx.x;
  const SplitTask& task = task_of_block(tasks, vector);
  if (vector < task.vectors) {
    split_vector<Source, kind>(task, vector);
  } else {
    clear_vector(task, vector);
  }
}

}  // namespace

// Blocks that a multiprocessor shall hold: as many as their registers let it without memory in their place.
#define KINTSUGI_SPLIT_ROWS(Source, kind, blocks)                              \
  extern "C" __global__ void __launch_bounds__(rows_threads, blocks)           \
      split_rows_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    split_rows<Source, ElementKind::kind>(tasks);                              \
  }

KINTSUGI_SPLIT_ROWS(float, fp16, 4)
KINTSUGI_SPLIT_ROWS(float, bf16, 4)
KINTSUGI_SPLIT_ROWS(float, tf32, 4)
KINTSUGI_SPLIT_ROWS(float, quantised, 4)
KINTSUGI_SPLIT_ROWS(float, digits, 3)
KINTSUGI_SPLIT_ROWS(float, residues, 4)
KINTSUGI_SPLIT_ROWS(double, digits, 3)
KINTSUGI_SPLIT_ROWS(double, residues, 4)

}  // namespace kintsugi::core::cuda
