// Ranges and norms of complex operands. A thread block reads the elements of some vectors, finds their ranges
// and then their norms. Its threads hold as many elements as their registers have room for, and read the
// others again; few thread blocks run at the same time, so that these are still in L2.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int held_elements = 8;  // of a thread
constexpr int warps = complex_norms_threads / 32;
constexpr int max_width = complex_norms_strip;  // largest number of vectors of a thread block

// Sums over a row or column of complex elements, from which the ranges of its real vectors follow. These have
// the same numbers, but imaginary parts of either sign (base/embedding.hpp).
template <class T>
struct ComplexSum {
  MagnitudesAndExponents<T> numbers;  // its flags are those of real parts
  std::uint32_t imaginary_flags = 0;

  __device__ void add(const T (&x)[2]) {
    const auto magnitude = std::bit_cast<typename Magnitudes<T>::Bits>(x[1]) & Magnitudes<T>::without_sign;
    if (magnitude < Magnitudes<T>::infinity) {
      numbers.add(x);
      return;
    }
    numbers.add(x[0]);
    VectorRange special;
    extend(special, x[1]);
    imaginary_flags |= special.flags & ~static_cast<std::uint32_t>(VectorRange::all_zero);
  }
  __device__ void add(const ComplexSum& other) {
    numbers.add(other.numbers);
    imaginary_flags |= other.imaginary_flags;
  }

  __device__ bool is_finite() const { return (numbers.flags | imaginary_flags) == 0; }
  // Flags that imaginary parts give to the real vector in which they have their sign or, if `negated`, the
  // other one.
  __device__ std::uint32_t flags_of_imaginary_parts(bool negated) const {
    const std::uint32_t plus = imaginary_flags & VectorRange::has_plus_infinity;
    const std::uint32_t minus = imaginary_flags & VectorRange::has_minus_infinity;
    static_assert(VectorRange::has_minus_infinity == 2 * VectorRange::has_plus_infinity);
    return (imaginary_flags & VectorRange::has_nan) | (negated ? plus * 2 | minus / 2 : plus | minus);
  }
};

template <class T>
__device__ void add_over_lanes(ComplexSum<T>& sum, unsigned lane_bits) {
  cuda::add_over_lanes(sum.numbers, lane_bits);
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) != 0) sum.imaginary_flags |= __shfl_xor_sync(~0U, sum.imaginary_flags, lane);
  }
}
__device__ inline void add_over_lanes(NormSums& sums, unsigned lane_bits) {
  cuda::add_over_lanes(sums, lane_bits);
}

// The thread's vector of the thread block, and the elements that the thread reads.
template <class T>
class ThreadElements {
 public:
  using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;

  __device__ ThreadElements(const RangesTask& task, std::int64_t block, int width)
      : lines_(complex_norms_threads / width), length_(static_cast<int>(task.matrix.columns)),
        stride_(task.matrix.column_stride) {
    vector = block * width + static_cast<int>(threadIdx.x) % width;
    exists = vector < task.matrix.rows;
    line_ = static_cast<int>(threadIdx.x) / width;
    const auto* start = matrix_start<std::complex<T>>(task.matrix, task.item + item_of_block());
    start_ = reinterpret_cast<const T*>(start + (exists ? vector : 0) * task.matrix.row_stride);
    is_aligned_ = reinterpret_cast<std::uintptr_t>(start) % sizeof(Pair) == 0;
  }

  // Number of chunks of a vector. A thread holds one chunk of its elements.
  __device__ int chunks() const { return static_cast<int>(divide_up(length_, lines_ * held_elements)); }

  // True if some thread's i-th element of a chunk exists.
  __device__ bool has(int chunk, int i) const { return (chunk * held_elements + i) * lines_ < length_; }

  // Loads the thread's elements of a chunk, zeros after the end.
  __device__ void load(int chunk, T (&x)[held_elements][2]) const {
#pragma unroll
    for (int i = 0; i < held_elements; ++i) {
      const int p = (chunk * held_elements + i) * lines_ + line_;
      x[i][0] = x[i][1] = 0;
      if (!exists || p >= length_) continue;
      const T* element = start_ + 2 * (p * stride_);
      if (is_aligned_) {
        const Pair pair = __ldg(reinterpret_cast<const Pair*>(element));
        x[i][0] = pair.x;
        x[i][1] = pair.y;
      } else {
        x[i][0] = __ldg(element);
        x[i][1] = __ldg(element + 1);
      }
    }
  }

  std::int64_t vector;
  bool exists;

 private:
  int lines_;  // threads that share a vector
  int length_;
  std::int64_t stride_;
  int line_;
  const T* start_;
  bool is_aligned_;
};

// Adds up the sums of the threads that share a vector. The first warp gets the results: lane l that of vector
// l % width.
template <class Sum>
__device__ void add_over_block(Sum& sum, int width, Sum (&warp_sums)[warps * max_width]) {
  const int thread = static_cast<int>(threadIdx.x);
  add_over_lanes(sum, all_lane_bits & ~(width - 1U));
  if (thread % 32 < width) warp_sums[thread / 32 * width + thread % 32] = sum;
  __syncthreads();
  if (thread >= 32) return;
  sum = {};
#pragma unroll 1
  for (int i = thread; i < warps * width; i += 32) sum.add(warp_sums[i]);
  add_over_lanes(sum, all_lane_bits & ~(width - 1U));
}

// Index of the first real vector of a row or column among all real vectors of the launch's items.
__device__ std::int64_t first_real_vector(const RangesTask& task, std::int64_t vector) {
  return item_of_block() * task.matrix.vectors() + (task.matrix.right ? 2 : 1) * vector;
}

// Stores the ranges of the real vectors that stand for a row or column.
template <class T>
__device__ void store_ranges(const RangesTask& task, std::int64_t vector, const ComplexSum<T>& sum) {
  const DeviceMatrix& matrix = task.matrix;
  VectorRange* ranges = task.ranges + first_real_vector(task, vector);
  VectorRange range = sum.numbers.range();
  const std::uint32_t flags = range.flags;
  range.flags = flags | sum.flags_of_imaginary_parts(matrix.conjugated != matrix.right);
  ranges[0] = range;
  if (!matrix.right) return;
  range.flags = flags | sum.flags_of_imaginary_parts(matrix.conjugated);
  ranges[1] = range;
}

// Adds the thread's elements of a vector to the sums of its norm, the chunk that it holds first.
template <class T>
__device__ void add_to_norm(const ThreadElements<T>& elements, bool is_finite, const TwoFactors& scaling,
                            T (&x)[held_elements][2], NormSums& sums) {
  const int last = elements.chunks() - 1;
#pragma unroll 1
  for (int chunk = last; chunk >= 0; --chunk) {
    if (chunk != last) elements.load(chunk, x);
#pragma unroll
    for (int i = 0; i < held_elements; ++i) {
      if (!elements.has(chunk, i)) continue;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        if (is_finite) {
          sums.add_finite(x[i][part], scaling);
        } else {
          sums.add(x[i][part], scaling);
        }
      }
    }
  }
}

// Finds ranges and norms of the `width` vectors of a thread block. The first threads finish one vector each.
template <class T>
__device__ void find_norms_of(const RangesTask& task, std::int64_t block, int width) {
  __shared__ ComplexSum<T> warp_sums[warps * max_width];
  __shared__ NormSums warp_norms[warps * max_width];
  __shared__ TwoFactors scalings[max_width];
  __shared__ bool is_finite[max_width];
  const ThreadElements<T> elements(task, block, width);
  const int thread = static_cast<int>(threadIdx.x);
  const bool finishes = thread < width && elements.exists;
  T x[held_elements][2];
  ComplexSum<T> sum;
#pragma unroll 1
  for (int chunk = 0; chunk < elements.chunks(); ++chunk) {
    elements.load(chunk, x);
#pragma unroll
    for (int i = 0; i < held_elements; ++i) {
      if (elements.has(chunk, i)) sum.add(x[i]);
    }
  }
  add_over_block(sum, width, warp_sums);
  if (thread < width) {
    scalings[thread] = norm_scaling(static_cast<const Magnitudes<T>&>(sum.numbers).range());
    is_finite[thread] = sum.is_finite();
  }
  __syncthreads();
  if (finishes) store_ranges(task, elements.vector, sum);  // while other warps go on
  NormSums norm_sums;
  add_to_norm(elements, is_finite[thread % width], scalings[thread % width], x, norm_sums);
  add_over_block(norm_sums, width, warp_norms);
  if (!finishes) return;
  const VectorNorm norm = norm_sums.norm(task.matrix.length());
  VectorNorm* norms = task.norms + first_real_vector(task, elements.vector);
  norms[0] = norm;
  if (task.matrix.right) norms[1] = norm;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(complex_norms_threads, 2)
    find_complex_norms(const __grid_constant__ RangesTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[is_of_second_task ? 1 : 0];
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);  // in the task
  const int width = complex_norms_width(task.matrix);
  if (task.matrix.type == ElementType::c64) {
    find_norms_of<double>(task, block, width);
  } else {
    find_norms_of<float>(task, block, width);
  }
}

}  // namespace kintsugi::core::cuda
