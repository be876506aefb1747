// Operands in device memory, and functions that several kernels share.
#pragma once

#include "base/embedding.hpp"
#include "engines/cuda/common/condition.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/split/magnitudes.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// True if the number at this address is zero. It has real type T, or is complex with parts of type T.
template <class T>
__device__ bool is_zero(const void* alpha, bool complex) {
  const T* parts = static_cast<const T*>(alpha);
  return parts[0] == T(0) && (!complex || parts[1] == T(0));
}

__device__ inline bool is_zero(const Alpha& alpha) {
  if (alpha.device == nullptr) return alpha.is_zero;
  const bool complex = alpha.type == ElementType::c32 || alpha.type == ElementType::c64;
  const bool is_fp64 = alpha.type == ElementType::f64 || alpha.type == ElementType::c64;
  return is_fp64 ? is_zero<double>(alpha.device, complex) : is_zero<float>(alpha.device, complex);
}

// Batch item of the thread block, counted from the first item of its launch.
__device__ inline std::int64_t item_of_block() { return blockIdx.y; }

// True if no product needs the slices: alpha is zero, or none of the batch items that the split serves has
// selected the split's candidate.
__device__ inline bool is_unneeded(const SplitTasks& tasks) {
  if (is_zero(tasks.alpha)) return true;
  const DeviceCondition& condition = tasks.condition;
  if (condition.selection == nullptr) return false;
  if (tasks.served_items == 1) return !holds(condition, item_of_block());
  bool is_selected = false;
  for (std::int64_t item = threadIdx.x; item < tasks.served_items; item += blockDim.x)
    is_selected = is_selected || holds(condition, item);
  return __syncthreads_or(is_selected ? 1 : 0) == 0;
}

// Sets the counters of a later product to 0. The launch's first thread block does so.
__device__ inline void clear_counters(const DeviceCounters& counters) {
  if (blockIdx.x != 0 || blockIdx.y != 0) return;
  for (std::int64_t i = threadIdx.x; i < counters.count; i += blockDim.x) counters.first[i] = 0;
}

// Begins a split kernel. Returns false if no product needs the slices; then the kernel must exit. Otherwise
// waits for the kernels before it and clears the counters of a later product.
__device__ inline bool begin_split(const SplitTasks& tasks) {
  launch_dependents();
  if (tasks.condition.selected_earlier && is_unneeded(tasks)) {
    exit_in_stream_order();
    return false;
  }
  grid_dependency_wait();
  const bool splits = tasks.condition.selected_earlier || !is_unneeded(tasks);
  if (splits) clear_counters(tasks.cleared);
  return splits;
}

// Address of the batch item's matrix. nullptr if there is no data, which is allowed if k is 0.
template <class T>
__device__ const T* matrix_start(const DeviceMatrix& matrix, std::int64_t item) {
  if (matrix.data == nullptr) return nullptr;
  if (matrix.pointers) return static_cast<const T* const*>(matrix.data)[item];
  return static_cast<const T*>(matrix.data) + item * matrix.batch_stride;
}

// Element p of vector v of a real matrix, or of the real matrix that stands for a complex one (EmbeddedView,
// base/embedding.hpp). A complex column of B gives two vectors: an even one (re, -im) and an odd one (im,
// re). A complex row of A gives (re, im). Conjugation changes the sign of im.
template <class T>
__device__ T real_element(const DeviceMatrix& matrix, const T* start, std::int64_t v, std::int64_t p) {
  if (!matrix.complex()) return start[v * matrix.row_stride + p * matrix.column_stride];
  const bool gives_real_part = matrix.right && (v & 1) == 0;
  const bool is_imaginary = ((p & 1) != 0) == (!matrix.right || gives_real_part);
  const std::int64_t row = matrix.right ? v >> 1 : v;
  const std::int64_t element = row * matrix.row_stride + (p >> 1) * matrix.column_stride;
  const T part = start[2 * element + (is_imaginary ? 1 : 0)];
  return is_imaginary && matrix.conjugated != gives_real_part ? -part : part;
}

// real_element() in FP64, for matrices of any type.
__device__ inline double any_element(const DeviceMatrix& matrix, std::int64_t item, std::int64_t v,
                                     std::int64_t p) {
  switch (matrix.type) {
    case ElementType::f32: return real_element(matrix, matrix_start<float>(matrix, item), v, p);
    case ElementType::f64: return real_element(matrix, matrix_start<double>(matrix, item), v, p);
    case ElementType::c32:
      return real_element(
          matrix, reinterpret_cast<const float*>(matrix_start<std::complex<float>>(matrix, item)), v, p);
    default:
      return real_element(
          matrix, reinterpret_cast<const double*>(matrix_start<std::complex<double>>(matrix, item)), v, p);
  }
}

// Starts a copy of sixteen bytes of an operand to shared memory, bypassing registers. With `bytes` = 0 zeros
// are written and nothing is read; otherwise `bytes` must be 16, because memcheck reports other numbers as
// reads of sixteen bytes. The copy is complete for the thread after await_copies().
template <class Source>
__device__ void copy_aligned(Source* shared, const Source* source, int bytes) {
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes)
               : "memory");
}

// copy_aligned() from a source that is aligned to its elements only. `bytes` may be any number; zeros follow.
template <class Source>
__device__ void copy_unaligned(Source* shared, const Source* source, int bytes) {
  constexpr int size = sizeof(Source);
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(uint4)); i += size) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target + i), "l"(source + i / size),
                 "n"(size), "r"(i < bytes ? size : 0)
                 : "memory");
  }
}

// Reads sixteen bytes of elements from shared memory.
template <class Source>
__device__ void read_chunk(const Source* shared, Source (&x)[sizeof(uint4) / sizeof(Source)]) {
  const uint4 bits = *reinterpret_cast<const uint4*>(shared);
  memcpy(x, &bits, sizeof bits);
}

// Lane bits with which add_over_lanes() adds over a whole warp.
inline constexpr unsigned all_lane_bits = 31;

// Adds up magnitudes over the lanes of a warp whose numbers differ in `lane_bits` only. All of these lanes
// get the result.
template <class T>
__device__ void add_over_lanes(Magnitudes<T>& magnitudes, unsigned lane_bits) {
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) == 0) continue;
    Magnitudes<T> other;
    other.largest = __shfl_xor_sync(~0U, magnitudes.largest, lane);
    other.smallest_minus_1 = __shfl_xor_sync(~0U, magnitudes.smallest_minus_1, lane);
    other.flags = __shfl_xor_sync(~0U, magnitudes.flags, lane);
    magnitudes.add(other);
  }
}

// Address of the matrix of the thread block's batch item.
template <class T>
__device__ const T* matrix_start(const SplitTask& task) {
  return matrix_start<T>(task.matrix, task.item + item_of_block());
}

// Range of vector `vector`, counted from the task's first vector, of the thread block's batch item.
__device__ inline VectorRange& range_of(const SplitTask& task, std::int64_t vector) {
  return task.ranges[item_of_block() * task.item_ranges + vector];
}

// Part of an operand that one thread block splits tile by tile: elements begin ... end - 1 of tile_vectors
// vectors.
struct TilesPart {
  std::int64_t first_vector;
  std::int64_t begin;
  std::int64_t end;

  __device__ TilesPart(const SplitTask& task, std::int64_t block) {
    const std::int64_t groups = task.padded_vectors / tile_vectors;
    first_vector = block % groups * tile_vectors;
    begin = block / groups * task.part_length;
    end = min(begin + task.part_length, task.vector_stride);
  }
};

// Returns the task of thread block `block` of a launch. Changes `block` to its index within that task.
__device__ inline const SplitTask& enter_task(const SplitTasks& tasks, std::int64_t& block) {
  if (block < tasks.task[0].blocks) return tasks.task[0];
  block -= tasks.task[0].blocks;
  return tasks.task[1];
}

// Adds to a counter of the report atomically.
__device__ inline void count(std::int64_t& counter, std::int64_t increment = 1) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&counter), static_cast<unsigned long long>(increment));
}

// Adds what a selection says of the operands to the report.
__device__ inline void add_ranges_to_report(DeviceReport& report, const DeviceSelection& selection) {
  if (!selection.a.finite || !selection.b.finite) count(report.special);
  atomicMax(&report.dynamic_range_a, selection.a.dynamic_range);
  atomicMax(&report.dynamic_range_b, selection.b.dynamic_range);
}

// Adds a batch item's selection to the report. The additions are atomic, because calls in several streams may
// add to one report.
__device__ inline void add_to_report(DeviceReport& report, const DeviceSelection& selection) {
  switch (selection.candidate) {
    case DeviceSelection::scaled: count(report.scaled); return;
    case DeviceSelection::none: count(report.unreachable); break;
    default: count(report.items[selection.candidate]);
  }
  add_ranges_to_report(report, selection);
}

}  // namespace kintsugi::core::cuda
