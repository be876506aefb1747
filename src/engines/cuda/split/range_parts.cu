// Ranges and norms of long vectors, part by part. Three kernels find ranges, and three find norms. begin_*
// clears sums. add_* adds the contribution of each part by atomic operations on integers. end_* turns the
// sums into ranges or norms. Before end_* the sums are in the memory of the vector's range or norm.
#include <bit>

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/vector_sums.cuh"
#include "engines/cuda/split/range_parts.hpp"

namespace kintsugi::core::cuda {

// Sums over parts of vectors, in either memory layout.
//
// The template parameter Summation defines what is summed. It has
// - a type Sum;
// - begin(v), the empty sum to which a thread adds elements of vector v;
// - add(sum, x), which adds the elements x of one vector;
// - add_each(sums, x), which adds x[i], an element of the i-th of several adjacent vectors, to sums[i];
// - end(v, sum), which gets the sum over one part of vector v;
// - max_adjacent, the largest number of adjacent vectors that a thread sums.

inline constexpr int parts_warps = parts_threads / 32;

// Elements begin ... end - 1 of a vector.
struct VectorPart {
  std::int64_t begin;
  std::int64_t end;

  __device__ VectorPart(const PartsTask& task, std::int64_t part)
      : begin(part * task.part_length), end(min(begin + task.part_length, task.matrix.length())) {}
};

template <class T>
__device__ bool is_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(uint4) == 0;
}

template <class T, int count>
__device__ void load_aligned(const T* source, T (&x)[count]) {
  static_assert(sizeof x == sizeof(uint4));
  const uint4 bits = __ldg(reinterpret_cast<const uint4*>(source));
  memcpy(x, &bits, sizeof bits);
}

// Adds a warp's part of a vector whose elements are contiguous, sixteen bytes at a time. `start` is the
// vector's first element and must be aligned to sixteen bytes.
template <class T, class Summation>
__device__ void add_aligned(const T* start, const VectorPart& part, const Summation& summation,
                            typename Summation::Sum& sum) {
  constexpr int chunk = sizeof(uint4) / sizeof(T);
  constexpr int unrolled = 4;
  constexpr int step = 32 * chunk;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t p = part.begin + lane * chunk; p < part.end; p += unrolled * step) {
    T x[unrolled][chunk];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const std::int64_t q = p + u * step;
      if (q + chunk <= part.end) {
        load_aligned(start + q, x[u]);
      } else {
#pragma unroll
        for (int i = 0; i < chunk; ++i) x[u][i] = q + i < part.end ? __ldg(start + q + i) : T(0);
      }
    }
#pragma unroll
    for (int u = 0; u < unrolled; ++u) summation.add(sum, x[u]);
  }
}

// Adds a warp's part of any vector, element by element.
template <class T, class Summation>
__device__ void add_line(const Line<T>& line, const VectorPart& part, const Summation& summation,
                         typename Summation::Sum& sum) {
  constexpr int unrolled = 8;
  for (std::int64_t p = part.begin + threadIdx.x % 32; p < part.end; p += unrolled * 32) {
    T x[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) x[u] = p + u * 32 < part.end ? line.element(p + u * 32) : T(0);
    summation.add(sum, x);
  }
}

// Along k: each warp sums one part of one vector.
template <class T, class Summation>
__device__ void add_along_k(const PartsTask& task, std::int64_t block, const Summation& summation) {
  const std::int64_t warp_of_launch = block * parts_warps + threadIdx.x / 32;
  if (warp_of_launch >= task.vectors * task.parts_per_vector) return;
  const std::int64_t vector = warp_of_launch / task.parts_per_vector;
  const VectorPart part(task, warp_of_launch % task.parts_per_vector);
  const Line<T> line = line_of<T>(task.matrix, task.item + item_of_block(), task.first + vector);
  typename Summation::Sum sum = summation.begin(vector);
  if (!line.complex && line.stride == 1 && is_aligned(line.start)) {
    add_aligned(line.start, part, summation, sum);
  } else {
    add_line(line, part, summation, sum);
  }
  add_over_lanes(sum, all_lane_bits);
  if (threadIdx.x % 32 == 0) summation.end(vector, sum);
}

// Shared memory of a thread block that reads across k. It has room for one sum per warp and vector.
inline constexpr int max_sum_bytes = 64;
inline constexpr int part_memory_bytes = parts_warps * (parts_strip_bytes / sizeof(float)) * max_sum_bytes;

// Vectors vector ... vector + chunk - 1 of an operand. If chunk is greater than 1, their elements of one
// inner index must be adjacent in memory.
template <class T, int chunk>
struct AdjacentLines {
  const PartsTask& task;
  std::int64_t vector;
  Line<T> line;

  __device__ AdjacentLines(const PartsTask& parts_task, std::int64_t first_vector)
      : task(parts_task), vector(first_vector),
        line(line_of<T>(parts_task.matrix, parts_task.item + item_of_block(),
                        parts_task.first + min(first_vector, parts_task.vectors - 1))) {}

  // Loads the vectors' elements of inner index p, and zeros for vectors that do not exist.
  __device__ void load(std::int64_t p, T (&x)[chunk]) const {
    if constexpr (chunk > 1) {
      if (vector + chunk <= task.vectors) return load_aligned(line.start + p * line.stride, x);
#pragma unroll
      for (int i = 0; i < chunk; ++i)
        x[i] = vector + i < task.vectors ? __ldg(line.start + p * line.stride + i) : T(0);
    } else {
      x[0] = vector < task.vectors ? line.element(p) : T(0);
    }
  }
};

// Across k: each thread block sums one part of all vectors of a strip. Neighboring threads have neighboring
// vectors.
template <class T, int chunk, class Summation>
__device__ void add_across(const PartsTask& task, std::int64_t block, const Summation& summation,
                           std::byte* memory) {
  constexpr int width = parts_strip_bytes / sizeof(T);
  constexpr int lanes = width / chunk;  // threads that read a line
  constexpr int lines = parts_threads / lanes;
  constexpr int unrolled = 4;
  using Sum = typename Summation::Sum;
  static_assert(sizeof(Sum) <= max_sum_bytes);
  auto& warp_sums = *reinterpret_cast<Sum(*)[parts_warps][width]>(memory);
  const std::int64_t strips = (task.vectors + width - 1) / width;
  const VectorPart part(task, block / strips);
  const std::int64_t first_vector = block % strips * width;  // of the strip
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % lanes * chunk;
  const AdjacentLines<T, chunk> vectors(task, first_vector + lane);
  Sum sums[chunk];
#pragma unroll
  for (int i = 0; i < chunk; ++i) sums[i] = summation.begin(min(first_vector + lane + i, task.vectors - 1));
  for (std::int64_t p = part.begin + thread / lanes; p < part.end; p += unrolled * lines) {
    T x[unrolled][chunk] = {};
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      if (p + u * lines < part.end) vectors.load(p + u * lines, x[u]);
    }
#pragma unroll
    for (int u = 0; u < unrolled; ++u) summation.add_each(sums, x[u]);
  }
#pragma unroll
  for (int i = 0; i < chunk; ++i) {
    add_over_lanes(sums[i], all_lane_bits & ~(lanes - 1U));  // over the lanes that have the same vectors
    if (thread % 32 < lanes) warp_sums[thread / 32][lane + i] = sums[i];
  }
  __syncthreads();
  if (thread >= width || first_vector + thread >= task.vectors) return;
  Sum sum = warp_sums[0][thread];
#pragma unroll 1
  for (int warp = 1; warp < parts_warps; ++warp) sum.add(warp_sums[warp][thread]);
  summation.end(first_vector + thread, sum);
}

// Sums the elements that thread block `block` of the operand must read. Like sum_vectors(), it reads along k
// or across k, whichever has the smaller stride. `memory` is shared memory of part_memory_bytes.
template <class T, class Summation>
__device__ void add_part(const PartsTask& task, std::int64_t block, const Summation& summation,
                         std::byte* memory) {
  const DeviceMatrix& matrix = task.matrix;
  if (abs(matrix.column_stride) <= abs(matrix.row_stride)) return add_along_k<T>(task, block, summation);
  constexpr int chunk = Summation::max_adjacent;
  const bool reads_lines = chunk > 1 && !matrix.complex() && matrix.row_stride == 1 &&
                           matrix.column_stride % chunk == 0 &&
                           is_aligned(matrix_start<T>(matrix, task.item + item_of_block()) + task.first);
  if (reads_lines) {
    add_across<T, chunk>(task, block, summation, memory);
  } else {
    add_across<T, 1>(task, block, summation, memory);
  }
}

namespace {

using Counter = unsigned long long;

// Range and norm of the thread block's batch item, for vector `vector` counted from the task's first vector.
__device__ VectorRange& range_of(const PartsTask& task, std::int64_t vector) {
  return task.ranges[item_of_block() * task.item_vectors + vector];
}
__device__ VectorNorm& norm_of(const PartsTask& task, std::int64_t vector) {
  return task.norms[item_of_block() * task.item_vectors + vector];
}

// Sum of a vector's biased exponents. If the operand has norms the sum is stored in the norm's `mean`.
// Otherwise it is stored in the range's `depth`: its 32 bits suffice for every vector whose depth will be
// known.
__device__ Counter* exponents_of(const PartsTask& task, std::int64_t vector) {
  return reinterpret_cast<Counter*>(&norm_of(task, vector).mean);
}
__device__ unsigned* exponents_of(VectorRange& range) { return reinterpret_cast<unsigned*>(&range.depth); }

// Sums of a norm, stored in the norm's memory. The same memory must not be accessed as two types, so the norm
// itself is written as the 64-bit words of the sums.
static_assert(sizeof(VectorNorm) == sizeof(NormSums) && alignof(VectorNorm) == alignof(NormSums));
__device__ NormSums& norm_sums_of(const PartsTask& task, std::int64_t vector) {
  return reinterpret_cast<NormSums&>(norm_of(task, vector));
}
__device__ NormSums words_of(const VectorNorm& norm) {
  NormSums words;
  memcpy(&words, &norm, sizeof words);
  return words;
}
__device__ void add_atomically(std::uint64_t& target, std::uint64_t term) {
  atomicAdd(reinterpret_cast<Counter*>(&target), static_cast<Counter>(term));
}

// Summation over parts that finds the ranges of parts and adds them to the vectors' ranges.
template <class T, bool with_exponents>
struct RangeOfPart {
  const PartsTask& task;

  using Sum = std::conditional_t<with_exponents, MagnitudesAndExponents<T>, Magnitudes<T>>;
  static constexpr int max_adjacent = sizeof(uint4) / sizeof(T);

  __device__ Sum begin(std::int64_t) const { return {}; }
  template <int count>
  __device__ static void add(Sum& sum, const T (&x)[count]) {
    sum.add(x);
  }
  template <int count>
  __device__ static void add_each(Sum (&sums)[count], const T (&x)[count]) {
    Sum::add_each(sums, x);
  }
  __device__ void end(std::int64_t vector, const Sum& sum) const {
    VectorRange& range = range_of(task, vector);
    const VectorRange part = static_cast<const Magnitudes<T>&>(sum).range();
    constexpr std::uint32_t all_zero = VectorRange::all_zero;
    if ((part.flags & all_zero) == 0) {
      atomicMax(&range.largest, part.largest);
      atomicMin(&range.smallest, part.smallest);
      atomicMax(&range.raised, part.raised);
      atomicAnd(&range.flags, ~all_zero);
    }
    if ((part.flags & ~all_zero) != 0) atomicOr(&range.flags, part.flags & ~all_zero);
    if constexpr (with_exponents) {
      if (!task.sums_exponents) return;
      atomicAdd(reinterpret_cast<unsigned*>(&range.elements), sum.elements);
      if (task.norms != nullptr) {
        atomicAdd(exponents_of(task, vector), static_cast<Counter>(sum.exponents));
      } else {
        atomicAdd(exponents_of(range), static_cast<unsigned>(sum.exponents));
      }
    }
  }
};

// Sums of a norm, and the scaling of the elements that are added.
struct NormSum {
  TwoFactors scaling;
  NormSums sums;

  __device__ void add(const NormSum& other) { sums.add(other.sums); }
};

__device__ void add_over_lanes(NormSum& sum, unsigned lane_bits) {
  cuda::add_over_lanes(sum.sums, lane_bits);
}

// Summation over parts that adds the contributions of parts to the norms of the vectors.
template <class T>
struct NormOfPart {
  const PartsTask& task;

  using Sum = NormSum;
  // An FP32 thread reads one vector, although sixteen bytes have elements of four: four sums need too many
  // registers.
  static constexpr int max_adjacent = sizeof(T) == 8 ? 2 : 1;

  __device__ Sum begin(std::int64_t vector) const { return {norm_scaling(range_of(task, vector)), {}}; }
  template <int count>
  __device__ static void add(Sum& sum, const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sum.sums.add(x[i], sum.scaling);
  }
  template <int count>
  __device__ static void add_each(Sum (&sums)[count], const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i].sums.add(x[i], sums[i].scaling);
  }
  __device__ void end(std::int64_t vector, const Sum& sum) const {
    NormSums& vector_sums = norm_sums_of(task, vector);
    add_atomically(vector_sums.squares, sum.sums.squares);
    add_atomically(vector_sums.magnitudes, sum.sums.magnitudes);
    add_atomically(vector_sums.logarithms, sum.sums.logarithms);
    add_atomically(vector_sums.elements, sum.sums.elements);
  }
};

__device__ bool is_fp64(const PartsTask& task) {
  return task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
}

// Returns the task of thread block `block` of a kernel that reads parts. Changes `block` to its index within
// that task.
__device__ const PartsTask& enter_task(const PartsTasks& tasks, std::int64_t& block) {
  if (block < tasks.task[0].part_blocks) return tasks.task[0];
  block -= tasks.task[0].part_blocks;
  return tasks.task[1];
}

// Calls visit(task, vector) for this thread's vector.
template <class Visit>
__device__ void visit_vector(const PartsTasks& tasks, const Visit& visit) {
  std::int64_t block = blockIdx.x;
  const bool is_of_second_task = block >= tasks.task[0].vector_blocks;
  const PartsTask& task = tasks.task[is_of_second_task ? 1 : 0];
  if (is_of_second_task) block -= tasks.task[0].vector_blocks;
  const std::int64_t vector = block * parts_threads + threadIdx.x;
  if (vector < task.vectors) visit(task, vector);
}

// Completes a vector's range from the sum of biased exponents. The result is that of
// MagnitudesAndExponents::range().
template <class T>
__device__ void end_range(const PartsTask& task, std::int64_t vector) {
  VectorRange& range = range_of(task, vector);
  const auto elements = static_cast<std::uint32_t>(range.elements);
  const std::uint64_t exponents = task.norms != nullptr ? *exponents_of(task, vector) : *exponents_of(range);
  if (task.finds_depth) {
    set_depth<T>(range, elements, exponents);
  } else {
    range.elements = 0;
    range.depth = VectorRange::unknown_depth;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(parts_threads)
    begin_range_parts(const __grid_constant__ PartsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  visit_vector(tasks, [](const PartsTask& task, std::int64_t vector) {
    VectorRange range;
    range.depth = 0;  // an empty sum of exponents
    range_of(task, vector) = range;
    if (task.norms != nullptr) *exponents_of(task, vector) = 0;
  });
}

extern "C" __global__ void __launch_bounds__(parts_threads, 3)
    add_range_parts(const __grid_constant__ PartsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  std::int64_t block = blockIdx.x;
  const PartsTask& task = enter_task(tasks, block);
  __shared__ __align__(sizeof(uint4)) std::byte memory[part_memory_bytes];
  if (!is_fp64(task)) {
    add_part<float>(task, block, RangeOfPart<float, /*with_exponents=*/true>{task}, memory);
  } else if (task.sums_exponents) {
    add_part<double>(task, block, RangeOfPart<double, /*with_exponents=*/true>{task}, memory);
  } else {
    add_part<double>(task, block, RangeOfPart<double, /*with_exponents=*/false>{task}, memory);
  }
}

extern "C" __global__ void __launch_bounds__(parts_threads)
    end_range_parts(const __grid_constant__ PartsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  visit_vector(tasks, [](const PartsTask& task, std::int64_t vector) {
    if (is_fp64(task)) {
      end_range<double>(task, vector);
    } else {
      end_range<float>(task, vector);
    }
  });
}

extern "C" __global__ void __launch_bounds__(parts_threads)
    begin_norm_parts(const __grid_constant__ PartsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  visit_vector(tasks, [](const PartsTask& task, std::int64_t vector) { norm_sums_of(task, vector) = {}; });
}

extern "C" __global__ void __launch_bounds__(parts_threads, 3)
    add_norm_parts(const __grid_constant__ PartsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  // The last parts of the operands come first: the kernel before this one read them last, so they are in L2.
  std::int64_t block = gridDim.x - 1 - blockIdx.x;
  const PartsTask& task = enter_task(tasks, block);
  __shared__ __align__(sizeof(uint4)) std::byte memory[part_memory_bytes];
  if (is_fp64(task)) {
    add_part<double>(task, block, NormOfPart<double>{task}, memory);
  } else {
    add_part<float>(task, block, NormOfPart<float>{task}, memory);
  }
}

extern "C" __global__ void __launch_bounds__(parts_threads)
    end_norm_parts(const __grid_constant__ PartsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  const NormFindings& findings = tasks.found_norms;
  visit_vector(tasks, [&](const PartsTask& task, std::int64_t vector) {
    const VectorRange& range = range_of(task, vector);
    const VectorNorm norm = norm_sums_of(task, vector).norm(task.matrix.length());
    norm_sums_of(task, vector) = words_of(norm);
    const bool can_rule_out = range.finite() && (range.flags & VectorRange::all_zero) == 0;
    if (findings.ruled_out == nullptr || !can_rule_out) return;
    const int top = norm_top(task.top_exponent, task.sum_bits, norm.bits);
    if (rules_proof_out(norm, top, task.matrix.length(), findings.coefficient)) *findings.ruled_out = 1;
  });
}

}  // namespace kintsugi::core::cuda
