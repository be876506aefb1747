// Rows and columns of complex elements: the vectors of a work item of find_complex_norms, the elements that a
// thread reads, and where ranges and norms are stored.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/head_sums.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

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

// A row or column of complex elements of a batch item.
struct ComplexVector {
  const RangesTask& task;
  std::int64_t item;  // counted from the launch's first item
  std::int64_t vector;

  // Index of its first real vector among all real vectors of the launch's items.
  __device__ std::int64_t first_real_vector() const {
    return item * task.matrix.vectors() + (task.matrix.right ? 2 : 1) * vector;
  }

  // Stores the ranges of the real vectors that stand for the row or column.
  template <class T>
  __device__ void store_ranges(const ComplexSum<T>& sum) const {
    const DeviceMatrix& matrix = task.matrix;
    VectorRange* ranges = task.ranges + first_real_vector();
    VectorRange range = sum.numbers.range();
    const std::uint32_t flags = range.flags;
    range.flags = flags | sum.flags_of_imaginary_parts(matrix.conjugated != matrix.right);
    ranges[0] = range;
    if (!matrix.right) return;
    range.flags = flags | sum.flags_of_imaginary_parts(matrix.conjugated);
    ranges[1] = range;
  }
  __device__ void store_norm(const NormSums& sums) const {
    const VectorNorm norm = sums.norm(task.matrix.length());
    VectorNorm* norms = task.norms + first_real_vector();
    norms[0] = norm;
    if (task.matrix.right) norms[1] = norm;
  }
};

namespace complex_norms {

constexpr int threads = complex_norms_threads;
constexpr int warps = threads / 32;
constexpr int thread_elements = complex_norms_chunk / threads;  // of a chunk

// Vectors of a work item.
struct WorkItem {
  const RangesTask& task;
  int width_bits;  // log2 of their number
  std::uint32_t item;
  std::int64_t first_vector;

  __device__ WorkItem(const ComplexNormsTasks& tasks, std::uint32_t work)
      : WorkItem(tasks, place_of(tasks, work)) {}

  __device__ int width() const { return 1 << width_bits; }
  // log2 of the number of threads that share a vector.
  __device__ int line_bits() const { return std::countr_zero(static_cast<unsigned>(threads)) - width_bits; }
  __device__ bool is_by_rows() const { return task.matrix.column_stride == 1; }
  // Number of chunks of a vector.
  __device__ int chunks() const {
    const int length = thread_elements << line_bits();  // of a chunk
    return max((static_cast<int>(task.matrix.columns) + length - 1) / length, 1);
  }
  __device__ ComplexVector vector(std::uint32_t index) const { return {task, item, first_vector + index}; }

 private:
  // Batch item, and the work item's number in it; the first `first_blocks` are those of the first operand.
  struct Place {
    std::uint32_t item;
    std::uint32_t block;
    std::uint32_t first_blocks;

    __device__ int task() const { return block < first_blocks ? 0 : 1; }
    __device__ std::int64_t block_of_task() const {
      return block < first_blocks ? block : block - first_blocks;
    }
  };
  __device__ static Place place_of(const ComplexNormsTasks& tasks, std::uint32_t work) {
    const auto first_blocks = static_cast<std::uint32_t>(tasks.ranges.task[0].blocks);
    const auto blocks = first_blocks + static_cast<std::uint32_t>(tasks.ranges.task[1].blocks);
    if (work < blocks) return {0, work, first_blocks};  // no division where there is no batch
    return {work / blocks, work % blocks, first_blocks};
  }
  __device__ WorkItem(const ComplexNormsTasks& tasks, const Place& place)
      : task(tasks.ranges.task[place.task()]), width_bits(tasks.width_bits[place.task()]), item(place.item),
        first_vector(place.block_of_task() << width_bits) {}
};

// The elements of a work item that the thread reads, all of one vector.
template <class T>
class ThreadElements {
 public:
  using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;

  __device__ explicit ThreadElements(const WorkItem& work) {
    const DeviceMatrix& matrix = work.task.matrix;
    const int thread = static_cast<int>(threadIdx.x);
    const int line_bits = work.line_bits();
    index = work.is_by_rows() ? thread >> line_bits : thread & (work.width() - 1);
    const int line = work.is_by_rows() ? thread & ((1 << line_bits) - 1) : thread >> work.width_bits;
    const auto* start = matrix_start<std::complex<T>>(matrix, work.task.item + work.item);
    is_aligned_ = reinterpret_cast<std::uintptr_t>(start) % sizeof(Pair) == 0;
    exists = work.first_vector + index < matrix.rows;
    const int after = static_cast<int>(matrix.columns) - line;
    count_ = exists && after > 0 ? ((after - 1) >> line_bits) + 1 : 0;
    const std::int64_t first = (work.first_vector + index) * matrix.row_stride + line * matrix.column_stride;
    start_ = reinterpret_cast<const T*>(start + (count_ > 0 ? first : 0));
    step_ = (2 * matrix.column_stride) << line_bits;
  }

  // Starts copies of the thread's elements of a chunk to shared memory, zeros after the end.
  __device__ void start_copies(int chunk, Pair* stage) const {
    const T* element = start_ + chunk * thread_elements * step_;
    const int count = count_ - chunk * thread_elements;
    const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(stage));
    constexpr auto step = static_cast<std::uint32_t>(threads * sizeof(Pair));
    if (is_aligned_) {
#pragma unroll
      for (int i = 0; i < thread_elements; ++i, element += step_) {
        if constexpr (sizeof(T) == 8) {
          copy_16_bytes(target + i * step, i < count ? element : start_, i < count);
        } else {
          copy_8_bytes(target + i * step, i < count ? element : start_, i < count);
        }
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < thread_elements; ++i, element += step_) {
      const T* source = i < count ? element : start_;
      if constexpr (sizeof(T) == 8) {
        copy_8_bytes(target + i * step, source, i < count);
        copy_8_bytes(target + i * step + sizeof(T), source + 1, i < count);
      } else {
        copy_4_bytes(target + i * step, source, i < count);
        copy_4_bytes(target + i * step + sizeof(T), source + 1, i < count);
      }
    }
  }
  // Loads the thread's e-th element, zeros after the end.
  __device__ void load(int e, T (&x)[2]) const {
    x[0] = x[1] = 0;
    if (e >= count_) return;
    const T* element = start_ + e * step_;
    x[0] = __ldg(element);
    x[1] = __ldg(element + 1);
  }

  int index;  // of the vector in the work item
  bool exists;

 private:
  const T* start_;
  std::int64_t step_;  // distance of the thread's elements, in numbers of type T
  int count_;
  bool is_aligned_;
};

// Lanes of a warp that have the same vector, and what they add to the vector's sums.
struct Lanes {
  unsigned bits;  // in which these lanes differ
  int place;      // of the lane among them

  __device__ explicit Lanes(const WorkItem& work) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned adjacent = work.is_by_rows() ? 1 : work.width();  // vectors
    bits = all_lane_bits & ~(adjacent - 1);
    place = static_cast<int>(lane / adjacent);
  }

  template <class T>
  __device__ void add_extremes(const HeadSums<T>& heads, VectorWords& sums) const {
    const std::uint32_t largest = max_over_lanes(heads.largest, bits);
    const std::uint32_t smallest = max_over_lanes(~heads.smallest_minus_1, bits);
    if (place < 2) atomicMax(&sums.extremes[place], place == 0 ? largest : smallest);
  }
  template <class T>
  __device__ void add(const HeadSums<T>& heads, std::uint64_t squares, std::uint32_t magnitudes,
                      VectorWords& sums) const {
    std::uint32_t words[vector_words];
    get_words(heads, squares, magnitudes, words);
    std::uint32_t mine = 0;
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      const std::uint32_t word = sum_over_lanes(words[i], bits);
      if (place == i) mine = word;
    }
    if (place < vector_words) atomicAdd(&sums.words[place], mine);
  }
};

}  // namespace complex_norms

}  // namespace kintsugi::core::cuda
