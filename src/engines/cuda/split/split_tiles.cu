// Splits of any operand, tile by tile. If the ranges are not known, a thread block reads its vectors twice,
// the first time for their ranges. If they are known, it reads a part of its vectors once.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/sums.cuh"
#include "engines/cuda/split/elements.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int lanes_of_vector = tile_threads / tile_vectors;

// Sum from which a vector's range follows.
template <class Source>
using Sum =
    std::conditional_t<sizeof(Source) == sizeof(float), MagnitudesAndExponents<Source>, Magnitudes<Source>>;

// Calls write(kind) with the kind of the task's elements as a constant.
template <class Source, class Write>
__device__ void with_kind_of_tile(const SplitTask& task, const Write& write) {
  using enum ElementKind;
  if constexpr (sizeof(Source) == sizeof(double)) {
    with_kind<digits, residues, wide_residues, by_rule>(task, write);
  } else {
    with_kind<fp16, fp16_with_depth, fitted, bf16, tf32, quantised, digits, residues>(task, write);
  }
}

template <class Source>
struct Tile {
  // One element of padding per vector avoids bank conflicts of accesses along vectors and across them.
  Source element[tile_vectors][tile_length + 1];
};

// Element p of vector v of the operand. The kernel for FP64 also reads operands of other types, if each
// element is split by the rule alone.
template <class Source>
__device__ Source read_element(const SplitTask& task, std::int64_t v, std::int64_t p) {
  if (sizeof(Source) == sizeof(double) && task.kind == ElementKind::by_rule)
    return static_cast<Source>(any_element(task.matrix, task.item + item_of_block(), v, p));
  return matrix_start<Source>(task)[v * task.matrix.row_stride + p * task.matrix.column_stride];
}

// Loads a tile, with zeros beyond the operand. Neighboring threads read along the smaller stride.
template <class Source>
__device__ void load_tile(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                          Tile<Source>& tile) {
  const DeviceMatrix& matrix = task.matrix;
  const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
#pragma unroll
  for (int i = 0; i < tile_vectors * tile_length / tile_threads; ++i) {
    const int e = static_cast<int>(threadIdx.x) + i * tile_threads;
    const int v = along_k ? e / tile_length : e % tile_vectors;
    const int p = along_k ? e % tile_length : e / tile_vectors;
    const bool exists = first_vector + v < task.vectors && first_element + p < task.length;
    tile.element[v][p] =
        exists ? read_element<Source>(task, task.first + first_vector + v, first_element + p) : Source(0);
  }
}

// Range of this thread's vector. It is complete in all threads of the vector.
template <class Source>
__device__ VectorRange find_range(const SplitTask& task, std::int64_t first_vector, Tile<Source>& tile) {
  const int v = threadIdx.x / lanes_of_vector;
  Sum<Source> sum;
  for (std::int64_t begin = 0; begin < task.length; begin += tile_length) {
    load_tile<Source>(task, first_vector, begin, tile);
    __syncthreads();
#pragma unroll
    for (int p = threadIdx.x % lanes_of_vector; p < tile_length; p += lanes_of_vector)
      sum.add(tile.element[v][p]);
    __syncthreads();
  }
  add_over_lanes(sum, lanes_of_vector - 1);  // the bits of the lane number within a vector
  if constexpr (sizeof(Source) == sizeof(float)) {
    if (task.kind != ElementKind::fp16_with_depth) return sum.range_without_depth();
  }
  return sum.range();
}

// Writes the slices of the tile's elements, or zeros for vectors of padding.
template <class Source>
__device__ void write_tile(const SplitTask& task, const Scaling& scaling, std::int64_t vector,
                           std::int64_t first_element, const Tile<Source>& tile) {
  constexpr int count = tile_length / lanes_of_vector;
  const int v = threadIdx.x / lanes_of_vector;
  const int p = threadIdx.x % lanes_of_vector * count;
  if (vector >= task.vectors)
    return write_zeros<count>(task, vector * task.vector_stride + first_element + p);
  with_kind_of_tile<Source>(task, [&](auto known) {
    const VectorWriter<known> writer(task, scaling, vector);
    writer.template write<count, /*step=*/1>(&tile.element[v][p], first_element + p);
  });
}

// Splits a part of an operand. `tile` and `scalings` are shared memory.
template <class Source>
__device__ void split_tiles_of(const SplitTask& task, const TilesPart& part, Tile<Source>& tile,
                               Scaling (&scalings)[tile_vectors]) {
  const std::int64_t first_vector = part.first_vector;
  const int v = threadIdx.x / lanes_of_vector;
  const std::int64_t vector = first_vector + v;
  VectorRange found;
  if (!task.ranges_known) found = find_range<Source>(task, first_vector, tile);
  if (threadIdx.x % lanes_of_vector == 0 && vector < task.vectors)
    scalings[v] = finish_range(task, task.kind, vector, found);
  __syncthreads();
  const Scaling scaling = vector < task.vectors ? scalings[v] : Scaling{};
  for (std::int64_t begin = part.begin; begin < part.end; begin += tile_length) {
    load_tile<Source>(task, first_vector, begin, tile);
    __syncthreads();
    write_tile<Source>(task, scaling, vector, begin, tile);
    __syncthreads();
  }
}

// Splits part after part. A launch has fewer thread blocks than parts if few calls are expected to select the
// candidate (SplitTraversal::max_launched).
template <class Source>
__device__ void split_tiles(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  __shared__ Tile<Source> tile;
  __shared__ Scaling scalings[tile_vectors];
  const std::int64_t parts = tasks.task[0].blocks + tasks.task[1].blocks;
#pragma unroll 1
  for (std::int64_t index = blockIdx.x; index < parts; index += gridDim.x) {
    std::int64_t part = index;
    const SplitTask& task = enter_task(tasks, part);
    split_tiles_of<Source>(task, TilesPart(task, part), tile, scalings);
    __syncthreads();
  }
}

}  // namespace

#define KINTSUGI_SPLIT_TILES(name, Source)                             \
  extern "C" __global__ void __launch_bounds__(tile_threads, 2)        \
      split_##name##_tiles(const __grid_constant__ SplitTasks tasks) { \
    split_tiles<Source>(tasks);                                        \
  }

KINTSUGI_SPLIT_TILES(f32, float)
KINTSUGI_SPLIT_TILES(f64, double)

}  // namespace kintsugi::core::cuda
