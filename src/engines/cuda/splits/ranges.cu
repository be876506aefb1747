// Exponents and flags of all vectors, for the choice of a rung.
#include "engines/cuda/splits/alpha.cuh"
#include "engines/cuda/splits/operands.cuh"
#include "engines/cuda/splits/ranges_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = ranges_threads / 32;
constexpr int unrolled = 4;

// A vector in any order: parts of its entries as they lie, those of the embedding but for their order.
template <class T>
struct Line {
  const T* start;
  std::int64_t stride;  // from entry to entry, in parts
  bool complex;
  bool negated;  // imaginary parts

  __device__ T element(std::int64_t p) const {
    if (!complex) return __ldg(start + p * stride);
    const T part = __ldg(start + (p >> 1) * stride + (p & 1));
    return negated && (p & 1) != 0 ? -part : part;
  }
};

template <class T>
__device__ Line<T> line_of(const DeviceMatrix& matrix, std::int64_t entry, std::int64_t vector) {
  if (!matrix.complex())
    return {matrix_start<T>(matrix, entry) + vector * matrix.row_stride, matrix.column_stride, false, false};
  const auto* start = reinterpret_cast<const T*>(matrix_start<std::complex<T>>(matrix, entry));
  const std::int64_t row = matrix.right ? vector >> 1 : vector;
  const bool even = matrix.right && (vector & 1) == 0;
  return {start + 2 * row * matrix.row_stride, 2 * matrix.column_stride, true, matrix.conjugated != even};
}

// Elements first, first + step, ... of a vector.
template <class T>
__device__ Magnitudes<T> magnitudes_of(const Line<T>& line, std::int64_t first, std::int64_t step,
                                       std::int64_t length) {
  Magnitudes<T> magnitudes;
  for (std::int64_t begin = first; begin < length; begin += unrolled * step) {
    T x[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const std::int64_t p = begin + u * step;
      x[u] = p < length ? line.element(p) : T(0);
    }
    magnitudes.add(x);
  }
  return magnitudes;
}

// A warp for each vector.
template <class T>
__device__ void find_along_k(const RangesTask& task, std::int64_t first) {
  for (int v = threadIdx.x / 32; v < ranges_vectors && first + v < task.vectors; v += warps) {
    Magnitudes<T> magnitudes =
        magnitudes_of(line_of<T>(task.matrix, task.entry, first + v), threadIdx.x % 32, 32, task.length);
    add_over_lanes(magnitudes, 31);
    if (threadIdx.x % 32 == 0) task.ranges[first + v] = magnitudes.range();
  }
}

// Neighbouring threads have neighbouring vectors.
template <class T>
__device__ void find_across(const RangesTask& task, std::int64_t first) {
  __shared__ Magnitudes<T> of_warp[warps][ranges_vectors];
  const int v = threadIdx.x % ranges_vectors;
  Magnitudes<T> magnitudes;
  if (first + v < task.vectors) {
    magnitudes = magnitudes_of(line_of<T>(task.matrix, task.entry, first + v), threadIdx.x / ranges_vectors,
                               ranges_threads / ranges_vectors, task.length);
  }
  add_over_lanes(magnitudes, 31 & ~(ranges_vectors - 1));
  if (threadIdx.x % 32 < ranges_vectors) of_warp[threadIdx.x / 32][v] = magnitudes;
  __syncthreads();
  if (threadIdx.x >= ranges_vectors || first + v >= task.vectors) return;
  for (int warp = 1; warp < warps; ++warp) magnitudes.add(of_warp[warp][v]);
  task.ranges[first + v] = magnitudes.range();
}

template <class T>
__device__ void find_block(const RangesTask& task, std::int64_t first) {
  if (abs(task.matrix.column_stride) <= abs(task.matrix.row_stride)) {
    find_along_k<T>(task, first);
  } else {
    find_across<T>(task, first);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_ranges(const __grid_constant__ RangesTasks tasks) {
  if (is_zero(tasks.alpha)) return;
  const bool second = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[second ? 1 : 0];
  const std::int64_t first = (blockIdx.x - (second ? tasks.task[0].blocks : 0)) * ranges_vectors;
  const bool wide = task.matrix.type == EntryType::f64 || task.matrix.type == EntryType::c64;
  if (wide) {
    find_block<double>(task, first);
  } else {
    find_block<float>(task, first);
  }
}

}  // namespace kintsugi::core::cuda
