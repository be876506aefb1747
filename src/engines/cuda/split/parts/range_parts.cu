// Ranges and norms of long vectors, part by part. Three kernels find ranges, and three find norms. begin_*
// clears sums. add_* adds the contribution of each part by atomic operations on integers. end_* turns the
// sums into ranges or norms. Before end_* the sums are in the memory of the vector's range or norm.
#include <bit>

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/split/parts/part_sums.cuh"

namespace kintsugi::core::cuda {

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

// Summation (part_sums.cuh) that finds the ranges of parts and adds them to the vectors' ranges.
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

// Summation (part_sums.cuh) that adds the contributions of parts to the norms of the vectors.
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
