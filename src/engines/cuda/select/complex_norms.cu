// Ranges and norms of complex operands, each element read once from memory. Thread blocks that stay on their
// SM go through the work items: a few rows or columns each. While they find a vector's norm, the first
// elements of the next one are on their way to shared memory.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/sums.cuh"

namespace kintsugi::core::cuda {

// Rows and columns of complex elements: the vectors of a work item of find_complex_norms, the elements that a
// thread reads, and where ranges and norms are stored.

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
  const VectorsTask& task;
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
  const VectorsTask& task;
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
    const auto first_blocks = static_cast<std::uint32_t>(tasks.vectors.task[0].blocks);
    const auto blocks = first_blocks + static_cast<std::uint32_t>(tasks.vectors.task[1].blocks);
    if (work < blocks) return {0, work, first_blocks};  // no division where there is no batch
    return {work / blocks, work % blocks, first_blocks};
  }
  __device__ WorkItem(const ComplexNormsTasks& tasks, const Place& place)
      : task(tasks.vectors.task[place.task()]), width_bits(tasks.width_bits[place.task()]), item(place.item),
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

namespace {

using namespace complex_norms;

// Sums over a vector in shared memory.
struct VectorSums : VectorWords {
  static constexpr std::uint32_t none = ~0U;

  std::uint32_t work = none;  // work item of the vector; none: there is no vector
  std::uint32_t index = 0;    // of the vector in its work item
};

constexpr int ring_size = 32;  // vectors whose ranges and norms are stored together, one by each lane

// Stores range and norm of each vector of a ring and clears the ring. One warp calls it.
template <class T>
__device__ void store_ring(const ComplexNormsTasks& tasks, VectorSums (&ring)[ring_size]) {
  const VectorSums sums = ring[threadIdx.x % 32];
  ring[threadIdx.x % 32] = {};
  if (sums.work == VectorSums::none || sums.is_general<T>()) return;
  const WorkItem work(tasks, sums.work);
  const auto numbers = static_cast<std::uint32_t>(2 * work.chunks() * thread_elements << work.line_bits());
  const ComplexVector vector = work.vector(sums.index);
  vector.store_ranges(ComplexSum<T>{sums.magnitudes<T>(numbers)});
  vector.store_norm(sums.norm_sums<T>(numbers));
}

// Adds up the sums of the threads that share a vector. All of them get the result. All threads of the thread
// block must call it together.
template <class Sum>
__device__ Sum add_over_vector(const WorkItem& work, int index, Sum sum) {
  __shared__ Sum warp_sums[warps][complex_norms_strip];
  const Lanes lanes(work);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  add_over_lanes(sum, lanes.bits);
  __syncthreads();  // the sums of an earlier call are read
  const int place = work.is_by_rows() ? 0 : index;
  if (lanes.place == 0) warp_sums[warp][place] = sum;
  __syncthreads();
  const int vector_warps = work.is_by_rows() ? warps >> work.width_bits : warps;
  const int first_warp = work.is_by_rows() ? index * vector_warps : 0;
  Sum total;
#pragma unroll 1
  for (int i = 0; i < vector_warps; ++i) total.add(warp_sums[first_warp + i][place]);
  return total;
}

// Finds ranges and norms of the vectors of a work item, whatever their elements are, and stores those for
// which VectorWords do not hold.
template <class T>
__device__ __noinline__ void find_general_norms(const ComplexNormsTasks& tasks, std::uint32_t work_index,
                                                const VectorSums* sums) {
  const WorkItem work(tasks, work_index);
  const ThreadElements<T> elements(work);
  const int count = work.chunks() * thread_elements;
  ComplexSum<T> sum;
#pragma unroll 4
  for (int e = 0; e < count; ++e) {
    T x[2];
    elements.load(e, x);
    sum.add(x);
  }
  sum = add_over_vector(work, elements.index, sum);
  const TwoFactors scaling = norm_scaling(static_cast<const Magnitudes<T>&>(sum.numbers).range());
  NormSums norm_sums;
#pragma unroll 4
  for (int e = 0; e < count; ++e) {
    T x[2];
    elements.load(e, x);
    norm_sums.add(x[0], scaling);
    norm_sums.add(x[1], scaling);
  }
  norm_sums = add_over_vector(work, elements.index, norm_sums);
  const int line = static_cast<int>(work.is_by_rows() ? threadIdx.x & ((1U << work.line_bits()) - 1)
                                                      : threadIdx.x >> work.width_bits);
  if (line != 0 || !elements.exists || !sums[elements.index].template is_general<T>()) return;
  work.vector(elements.index).store_ranges(sum);
  work.vector(elements.index).store_norm(norm_sums);
}

// The thread's elements in shared memory: those of the chunk that is copied, and the heads of the parts of
// earlier ones.
template <class T>
struct ThreadMemory {
  using Pair = typename ThreadElements<T>::Pair;

  Pair* stage;
  uint2* heads;

  __device__ explicit ThreadMemory(unsigned char* memory)
      : stage(reinterpret_cast<Pair*>(memory) + threadIdx.x),
        heads(reinterpret_cast<uint2*>(memory + complex_norms_chunk * sizeof(Pair)) + threadIdx.x) {}

  __device__ uint2& head(int chunk, int i) const { return heads[(chunk * thread_elements + i) * threads]; }
};

// Adds the thread's elements of the chunk that was copied, and keeps their heads if `keeps` says so.
template <class T>
__device__ void add_chunk(const ThreadMemory<T>& memory, int chunk, bool keeps, HeadSums<T>& sums) {
#pragma unroll
  for (int i = 0; i < thread_elements; ++i) {
    const auto element = memory.stage[i * threads];
    const Head<T> re(element.x);
    const Head<T> im(element.y);
    if (keeps) memory.head(chunk, i) = make_uint2(re.bits, im.bits);
    sums.add(re);
    sums.add(im);
  }
}

// Adds squares and magnitudes of the integers of the thread's elements of a vector.
template <class T>
__device__ void add_integers(const ThreadElements<T>& elements, const ThreadMemory<T>& memory, int chunks,
                             int kept_chunks, T factor, std::uint64_t& squares, std::uint32_t& magnitudes) {
#pragma unroll 1
  for (int chunk = 0; chunk < chunks; ++chunk) {
    uint2 heads[thread_elements];
#pragma unroll
    for (int i = 0; i < thread_elements; ++i) {
      if (chunk < kept_chunks) {
        heads[i] = memory.head(chunk, i);
      } else {
        T x[2];
        elements.load(chunk * thread_elements + i, x);
        heads[i] = make_uint2(Head<T>(x[0]).bits, Head<T>(x[1]).bits);
      }
    }
#pragma unroll
    for (const uint2& head : heads) {
      const std::uint32_t re = scaled_above(head.x, factor);
      const std::uint32_t im = scaled_above(head.y, factor);
      squares += static_cast<std::uint64_t>(re) * re;
      squares += static_cast<std::uint64_t>(im) * im;
      magnitudes += re + im;
    }
  }
}

// Finds the norms of a thread block's work items one after the other.
template <class T>
class NormFinder {
 public:
  __device__ NormFinder(const ComplexNormsTasks& tasks, unsigned char* memory,
                        VectorSums (&rings)[2][ring_size])
      : tasks_(tasks), memory_(memory), rings_(rings) {}

  __device__ void find_all() {
    ThreadElements<T> next(WorkItem(tasks_, blockIdx.x));
    next.start_copies(0, memory_.stage);
#pragma unroll 1
    for (std::uint32_t i = blockIdx.x; i < tasks_.work_items; i += gridDim.x) {
      const ThreadElements<T> elements = next;
      find(i, elements, next);
    }
    __syncthreads();
    if (threadIdx.x < 32) store_ring<T>(tasks_, rings_[ring_]);
  }

 private:
  // Finds the norms of a work item. Sets `next` to the elements of the thread block's next one.
  __device__ void find(std::uint32_t index, const ThreadElements<T>& elements, ThreadElements<T>& next) {
    const WorkItem work(tasks_, index);
    VectorSums* const first = take_sums(work.width());
    VectorSums& sums = first[elements.index];
    const Lanes lanes(work);
    const int chunks = work.chunks();
    const HeadSums<T> heads = add_heads(index, elements, chunks, next);
    lanes.add_extremes(heads, sums);
    if (elements.exists && lanes.place == 0) {
      sums.work = index;
      sums.index = elements.index;
    }
    __syncthreads();
    if (is_pending_ && threadIdx.x < 32) store_ring<T>(tasks_, rings_[ring_ ^ 1]);
    is_pending_ = false;
    bool is_general = false;  // the same in all threads
    for (int v = 0; v < work.width(); ++v) is_general = is_general || first[v].template is_general<T>();
    if (is_general) find_general_norms<T>(tasks_, index, first);
    std::uint64_t squares = 0;
    std::uint32_t magnitudes = 0;
    add_integers(elements, memory_, chunks, tasks_.kept_chunks, sums.template factor<T>(), squares,
                 magnitudes);
    lanes.add(heads, squares, magnitudes, sums);
  }

  // Returns memory for the sums of a work item's vectors. If the ring is full, it will be stored when all
  // threads have added to it.
  __device__ VectorSums* take_sums(int width) {
    if (used_ + width > ring_size) {
      ring_ ^= 1;
      used_ = 0;
      is_pending_ = true;
    }
    used_ += width;
    return rings_[ring_] + used_ - width;
  }

  // Adds up the thread's elements of a work item. Copies of the elements after a chunk start when it was
  // read.
  __device__ HeadSums<T> add_heads(std::uint32_t index, const ThreadElements<T>& elements, int chunks,
                                   ThreadElements<T>& next) {
    HeadSums<T> heads;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      await_copies();
      add_chunk(memory_, chunk, chunk < tasks_.kept_chunks, heads);
      if (chunk + 1 < chunks) {
        elements.start_copies(chunk + 1, memory_.stage);
      } else if (index + gridDim.x < tasks_.work_items) {
        next = ThreadElements<T>(WorkItem(tasks_, index + gridDim.x));
        next.start_copies(0, memory_.stage);
      }
    }
    return heads;
  }

  const ComplexNormsTasks& tasks_;
  const ThreadMemory<T> memory_;
  VectorSums (&rings_)[2][ring_size];  // while one is stored, the other is filled
  int ring_ = 0;                       // that is filled
  int used_ = 0;                       // sums of this ring
  bool is_pending_ = false;            // true: the other ring is to be stored
};

template <class T>
__device__ void find_norms(const ComplexNormsTasks& tasks) {
  extern __shared__ __align__(sizeof(uint4)) unsigned char shared[];
  __shared__ VectorSums rings[2][ring_size];
  if (threadIdx.x < 2 * ring_size) rings[threadIdx.x / ring_size][threadIdx.x % ring_size] = {};
  __syncthreads();
  NormFinder<T>(tasks, shared, rings).find_all();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(complex_norms_threads, 1)
    find_complex_norms(const __grid_constant__ ComplexNormsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.vectors.alpha)) return;
  const VectorsTask& task = tasks.vectors.task[tasks.vectors.task[0].blocks > 0 ? 0 : 1];
  if (task.matrix.type == ElementType::c64) {
    find_norms<double>(tasks);
  } else {
    find_norms<float>(tasks);
  }
}

}  // namespace kintsugi::core::cuda
