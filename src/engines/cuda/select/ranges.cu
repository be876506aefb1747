// Ranges of all vectors, for the selection of a candidate, and their norms (VectorNorm), by which residues
// are scaled and proved (arith/residue/norm_proof.hpp). A vector that one warp or thread block reads alone is
// finished at once. The parts of longer vectors add their sums by atomic operations on integers, whose order
// does not matter: begin_parts clears the sums, end_parts turns them into ranges or norms.
#include "arith/residue/residue_scale.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/sums.cuh"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

using Counter = unsigned long long;

// Index of a vector of the thread block's batch item, counted from the task's first vector.
__device__ std::int64_t index_of(const VectorsTask& task, std::int64_t vector) {
  return item_of_block() * task.item_vectors + vector;
}
__device__ VectorRange& range_of(const VectorsTask& task, std::int64_t vector) {
  return task.ranges[index_of(task, vector)];
}
__device__ VectorNorm& norm_of(const VectorsTask& task, std::int64_t vector) {
  return task.norms[index_of(task, vector)];
}

// Sum of a divided vector's biased exponents. If the operand has norms the sum is stored in the norm's
// `mean`. Otherwise it is stored in the range's `depth`: its 32 bits suffice for every vector whose depth
// will be known.
__device__ Counter* exponents_of(const VectorsTask& task, std::int64_t vector) {
  return reinterpret_cast<Counter*>(&norm_of(task, vector).mean);
}
__device__ unsigned* exponents_of(VectorRange& range) { return reinterpret_cast<unsigned*>(&range.depth); }

// Sums of a divided vector's norm, stored in the norm's memory. The same memory must not be accessed as two
// types, so the norm itself is written as the 64-bit words of the sums.
static_assert(sizeof(VectorNorm) == sizeof(NormSums) && alignof(VectorNorm) == alignof(NormSums));
__device__ NormSums& norm_sums_of(const VectorsTask& task, std::int64_t vector) {
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

// Summation (vector_sums.cuh) that finds ranges.
template <class T, bool with_exponents>
struct RangeSummation {
  const VectorsTask& task;

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
    VectorRange part = static_cast<const Magnitudes<T>&>(sum).range();
    if (!task.is_divided) {
      if constexpr (with_exponents) {
        if (task.finds_depth) set_depth<T>(part, sum.elements, sum.exponents);
      }
      range = part;
      return;
    }
    constexpr std::uint32_t all_zero = VectorRange::all_zero;
    if ((part.flags & all_zero) == 0) {
      atomicMax(&range.largest, part.largest);
      atomicMin(&range.smallest, part.smallest);
      atomicMax(&range.raised, part.raised);
      atomicAnd(&range.flags, ~all_zero);
    }
    if ((part.flags & ~all_zero) != 0) atomicOr(&range.flags, part.flags & ~all_zero);
    if constexpr (with_exponents) {
      if (!task.finds_depth) return;
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

// Sets the flag of `findings` if the vector's norm rules the proof out.
__device__ void test_norm(const VectorsTask& task, std::int64_t vector, const VectorNorm& norm,
                          const NormFindings& findings) {
  const VectorRange& range = range_of(task, vector);
  const bool can_rule_out = range.finite() && (range.flags & VectorRange::all_zero) == 0;
  if (findings.ruled_out == nullptr || !can_rule_out) return;
  const int top = norm_top(task.top_exponent, task.sum_bits, norm.bits);
  if (rules_proof_out(norm, top, task.matrix.length(), findings.coefficient)) *findings.ruled_out = 1;
}

// Summation (vector_sums.cuh) that finds norms of vectors whose ranges are known.
template <class T>
struct NormSummation {
  const VectorsTask& task;
  const NormFindings& findings;

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
    if (!task.is_divided) {
      const VectorNorm norm = sum.sums.norm(task.matrix.length());
      norm_of(task, vector) = norm;
      return test_norm(task, vector, norm, findings);
    }
    NormSums& vector_sums = norm_sums_of(task, vector);
    add_atomically(vector_sums.squares, sum.sums.squares);
    add_atomically(vector_sums.magnitudes, sum.sums.magnitudes);
    add_atomically(vector_sums.logarithms, sum.sums.logarithms);
    add_atomically(vector_sums.elements, sum.sums.elements);
  }
};

// Sums of ranges, and of squares and magnitudes in FP64, unless there are NaN or infinities.
struct ScalingSums : Magnitudes<double> {
  double squares = 0;
  double magnitudes = 0;

  template <int count>
  __device__ void add(const double (&x)[count]) {
    if (!Magnitudes<double>::add(x)) return;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      squares = fma(x[i], x[i], squares);
      magnitudes += fabs(x[i]);
    }
  }
  __device__ void add(const ScalingSums& other) {
    Magnitudes<double>::add(static_cast<const Magnitudes<double>&>(other));
    squares += other.squares;
    magnitudes += other.magnitudes;
  }
};

__device__ void add_over_lanes(ScalingSums& sum, unsigned lane_bits) {
  cuda::add_over_lanes(static_cast<Magnitudes<double>&>(sum), lane_bits);
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) == 0) continue;
    sum.squares += __shfl_xor_sync(~0U, sum.squares, lane);
    sum.magnitudes += __shfl_xor_sync(~0U, sum.magnitudes, lane);
  }
}

// Summation (vector_sums.cuh) that finds ranges, bits of norms and magnitudes, of whole vectors.
struct ScalingNormSummation {
  const VectorsTask& task;

  using Sum = ScalingSums;
  static constexpr int max_adjacent = 0;

  __device__ Sum begin(std::int64_t) const { return {}; }
  template <int count>
  __device__ static void add(Sum& sum, const double (&x)[count]) {
    sum.add(x);
  }
  __device__ static void add_each(Sum (&sums)[1], const double (&x)[1]) { sums[0].add(x); }
  __device__ void end(std::int64_t vector, const Sum& sum) const {
    const std::int64_t index = index_of(task, vector);
    const VectorRange range = sum.range();
    task.ranges[index] = range;
    task.norms[index] = {.bits = bits_of_squares(sum.squares, range, task.matrix.length())};
    if (task.magnitudes != nullptr) task.magnitudes[index] = {.sum = sum.magnitudes, .summed = 1};
  }
};

// Calls visit(task, vector) for this thread's vector.
template <class Visit>
__device__ void visit_vector(const VectorsTasks& tasks, const Visit& visit) {
  std::int64_t block = blockIdx.x;
  const bool is_of_second_task = block >= tasks.task[0].vector_blocks;
  const VectorsTask& task = tasks.task[is_of_second_task ? 1 : 0];
  if (is_of_second_task) block -= tasks.task[0].vector_blocks;
  const std::int64_t vector = block * vectors_threads + threadIdx.x;
  if (vector < task.vectors) visit(task, vector);
}

// Completes a divided vector's range from the sum of biased exponents. The result is that of
// MagnitudesAndExponents::range().
template <class T>
__device__ void end_range(const VectorsTask& task, std::int64_t vector) {
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

extern "C" __global__ void __launch_bounds__(vectors_threads)
    begin_parts(const __grid_constant__ VectorsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  visit_vector(tasks, [&](const VectorsTask& task, std::int64_t vector) {
    if (tasks.of_norms) {
      norm_sums_of(task, vector) = {};
      return;
    }
    VectorRange range;
    range.depth = 0;  // an empty sum of exponents
    range_of(task, vector) = range;
    if (task.norms != nullptr) *exponents_of(task, vector) = 0;
  });
}

extern "C" __global__ void __launch_bounds__(vectors_threads)
    end_parts(const __grid_constant__ VectorsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  visit_vector(tasks, [&](const VectorsTask& task, std::int64_t vector) {
    if (tasks.of_norms) {
      const VectorNorm norm = norm_sums_of(task, vector).norm(task.matrix.length());
      norm_sums_of(task, vector) = words_of(norm);
      test_norm(task, vector, norm, tasks.found_norms);
    } else if (is_fp64(task)) {
      end_range<double>(task, vector);
    } else {
      end_range<float>(task, vector);
    }
  });
}

extern "C" __global__ void __launch_bounds__(vectors_threads, 3)
    find_ranges(const __grid_constant__ VectorsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  with_task(tasks, blockIdx.x, [](const VectorsTask& task, std::int64_t block, std::byte* memory) {
    if (!is_fp64(task)) {
      sum_vectors<float>(task, block, RangeSummation<float, /*with_exponents=*/true>{task}, memory);
    } else if (task.finds_depth) {
      sum_vectors<double>(task, block, RangeSummation<double, /*with_exponents=*/true>{task}, memory);
    } else {
      sum_vectors<double>(task, block, RangeSummation<double, /*with_exponents=*/false>{task}, memory);
    }
  });
}

extern "C" __global__ void __launch_bounds__(vectors_threads, 3)
    find_norms(const __grid_constant__ VectorsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  // The last parts of the operands come first: the kernel before this one read them last, so they are in L2.
  with_task(tasks, gridDim.x - 1 - blockIdx.x,
            [&](const VectorsTask& task, std::int64_t block, std::byte* memory) {
              if (is_fp64(task)) {
                sum_vectors<double>(task, block, NormSummation<double>{task, tasks.found_norms}, memory);
              } else {
                sum_vectors<float>(task, block, NormSummation<float>{task, tasks.found_norms}, memory);
              }
            });
}

// Ranges, norms that give scales alone, and sums from which rounding errors follow, in one read. Norms that
// also prove a product take a second read (find_norms).
extern "C" __global__ void __launch_bounds__(vectors_threads)
    find_scaling_norms(const __grid_constant__ VectorsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  with_task(tasks, blockIdx.x, [](const VectorsTask& task, std::int64_t block, std::byte* memory) {
    sum_vectors<double>(task, block, ScalingNormSummation{task}, memory);
  });
}

}  // namespace kintsugi::core::cuda
