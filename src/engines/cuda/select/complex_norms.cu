// Ranges and norms of complex operands, each element read once from memory. Thread blocks that stay on their
// SM go through the work items: a few rows or columns each. While they find a vector's norm, the first
// elements of the next one are on their way to shared memory.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/head_sums.cuh"
#include "engines/cuda/select/general_complex_norms.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int threads = complex_norms_threads;
constexpr int thread_elements = complex_norms_chunk / threads;  // of a chunk

// Vectors of a work item.
struct WorkItem {
  const RangesTask& task;
  std::int64_t item;
  std::int64_t first_vector;

  __device__ WorkItem(const ComplexNormsTasks& tasks, std::uint32_t work)
      : WorkItem(tasks, work / items_work(tasks), work % items_work(tasks)) {}

  __device__ int width() const { return complex_norms_width(task.matrix); }
  // Threads that share a vector.
  __device__ int lines() const { return threads / width(); }
  __device__ bool is_by_rows() const { return task.matrix.column_stride == 1; }
  // Number of chunks of a vector. A thread holds one chunk of its elements.
  __device__ int chunks() const {
    return max(static_cast<int>(divide_up(task.matrix.columns, lines() * thread_elements)), 1);
  }
  __device__ ComplexVector vector(std::uint32_t index) const { return {task, item, first_vector + index}; }

 private:
  __device__ static std::uint32_t items_work(const ComplexNormsTasks& tasks) {
    return static_cast<std::uint32_t>(tasks.ranges.task[0].blocks + tasks.ranges.task[1].blocks);
  }
  __device__ WorkItem(const ComplexNormsTasks& tasks, std::uint32_t batch_item, std::uint32_t block)
      : task(tasks.ranges.task[block < tasks.ranges.task[0].blocks ? 0 : 1]), item(batch_item),
        first_vector((block - (block < tasks.ranges.task[0].blocks ? 0 : tasks.ranges.task[0].blocks)) *
                     complex_norms_width(task.matrix)) {}
};

// The elements of a work item that the thread reads, all of one vector.
template <class T>
class ThreadElements {
 public:
  using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;

  __device__ explicit ThreadElements(const WorkItem& work) {
    const DeviceMatrix& matrix = work.task.matrix;
    const int thread = static_cast<int>(threadIdx.x);
    const int lines = work.lines();
    index = work.is_by_rows() ? thread / lines : thread % work.width();
    const int line = work.is_by_rows() ? thread % lines : thread / work.width();
    const auto* start = matrix_start<std::complex<T>>(matrix, work.task.item + work.item);
    is_aligned_ = reinterpret_cast<std::uintptr_t>(start) % sizeof(Pair) == 0;
    exists = work.first_vector + index < matrix.rows;
    const int after = static_cast<int>(matrix.columns) - line;
    count_ = exists && after > 0 ? (after + lines - 1) / lines : 0;
    const std::int64_t first =
        (work.first_vector + index) * matrix.row_stride + line * matrix.column_stride;
    start_ = reinterpret_cast<const T*>(start + (count_ > 0 ? first : 0));
    step_ = 2 * lines * matrix.column_stride;
  }

  // Starts copies of the thread's elements of a chunk to shared memory, zeros after the end.
  __device__ void start_copies(int chunk, Pair* stage) const {
#pragma unroll
    for (int i = 0; i < thread_elements; ++i) {
      const int e = chunk * thread_elements + i;
      const bool has = e < count_;
      const T* element = start_ + (has ? e * step_ : 0);
      const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(stage + i * threads));
      if constexpr (sizeof(T) == 8) {
        if (is_aligned_) {
          copy_16_bytes(target, element, has);
        } else {
          copy_8_bytes(target, element, has);
          copy_8_bytes(target + sizeof(T), element + 1, has);
        }
      } else if (is_aligned_) {
        copy_8_bytes(target, element, has);
      } else {
        copy_4_bytes(target, element, has);
        copy_4_bytes(target + sizeof(T), element + 1, has);
      }
    }
  }
  // Loads element i of a chunk, zeros after the end.
  __device__ void load(int chunk, int i, T (&x)[2]) const {
    const int e = chunk * thread_elements + i;
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

// Sums over a vector in shared memory.
struct VectorSums : VectorWords {
  static constexpr std::uint32_t none = ~0U;

  std::uint32_t work = none;  // work item of the vector; none: there is no vector
  std::uint32_t index = 0;    // of the vector in its work item
};

// Sums of vectors whose ranges and norms are stored together. While one ring is stored, the other is filled.
struct Rings {
  static constexpr int size = 32;  // a lane stores one vector

  VectorSums sums[2][size];
};

// Stores range and norm of each vector of a ring and clears the ring. One warp calls it.
template <class T>
__device__ void store_ring(const ComplexNormsTasks& tasks, VectorSums (&ring)[Rings::size]) {
  const VectorSums sums = ring[threadIdx.x % 32];
  ring[threadIdx.x % 32] = {};
  if (sums.work == VectorSums::none || sums.is_general<T>()) return;
  const WorkItem work(tasks, sums.work);
  const auto numbers = static_cast<std::uint32_t>(2 * work.chunks() * work.lines() * thread_elements);
  const ComplexVector vector = work.vector(sums.index);
  vector.store_ranges(ComplexSum<T>{sums.magnitudes<T>(numbers)});
  vector.store_norm(sums.norm_sums<T>(numbers));
}

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
  __device__ void add_extremes(const HeadSums<T>& heads, VectorSums& sums) const {
    const std::uint32_t largest = max_over_lanes(heads.largest, bits);
    const std::uint32_t smallest = max_over_lanes(~heads.smallest_minus_1, bits);
    if (place < 2) atomicMax(&sums.extremes[place], place == 0 ? largest : smallest);
  }
  template <class T>
  __device__ void add(const HeadSums<T>& heads, std::uint64_t squares, std::uint32_t magnitudes,
                      VectorSums& sums) const {
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
        elements.load(chunk, i, x);
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

// Finds the norms of the thread block's work items.
template <class T>
__device__ void find_norms(const ComplexNormsTasks& tasks) {
  extern __shared__ __align__(sizeof(uint4)) unsigned char shared[];
  __shared__ Rings rings;
  const ThreadMemory<T> memory(shared);
  if (threadIdx.x < 2 * Rings::size) rings.sums[threadIdx.x / Rings::size][threadIdx.x % Rings::size] = {};
  __syncthreads();
  int ring = 0;
  int used = 0;             // sums of the ring
  bool is_pending = false;  // true: the other ring is to be stored
  ThreadElements<T> next(WorkItem(tasks, blockIdx.x));
  next.start_copies(0, memory.stage);
#pragma unroll 1
  for (std::uint32_t i = blockIdx.x; i < tasks.work_items; i += gridDim.x) {
    const WorkItem work(tasks, i);
    const ThreadElements<T> elements = next;
    if (used + work.width() > Rings::size) {
      ring ^= 1;
      used = 0;
      is_pending = true;
    }
    VectorSums* const first = rings.sums[ring] + used;
    VectorSums& sums = first[elements.index];
    const Lanes lanes(work);
    const int chunks = work.chunks();
    HeadSums<T> heads;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      await_copies();
      add_chunk(memory, chunk, chunk < tasks.kept_chunks, heads);
      if (chunk + 1 < chunks) {
        elements.start_copies(chunk + 1, memory.stage);
      } else if (i + gridDim.x < tasks.work_items) {
        next = ThreadElements<T>(WorkItem(tasks, i + gridDim.x));
        next.start_copies(0, memory.stage);
      }
    }
    lanes.add_extremes(heads, sums);
    if (elements.exists && lanes.place == 0) {
      sums.work = i;
      sums.index = elements.index;
    }
    __syncthreads();
    if (is_pending && threadIdx.x < 32) store_ring<T>(tasks, rings.sums[ring ^ 1]);
    is_pending = false;
    for (int v = 0; v < work.width(); ++v) {
      if (first[v].work == i && first[v].template is_general<T>()) find_general_norm<T>(work.vector(v));
    }
    std::uint64_t squares = 0;
    std::uint32_t magnitudes = 0;
    add_integers(elements, memory, chunks, tasks.kept_chunks, sums.template factor<T>(), squares, magnitudes);
    lanes.add(heads, squares, magnitudes, sums);
    used += work.width();
  }
  __syncthreads();
  if (threadIdx.x < 32) store_ring<T>(tasks, rings.sums[ring]);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(complex_norms_threads, 1)
    find_complex_norms(const __grid_constant__ ComplexNormsTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.ranges.alpha)) return;
  const RangesTask& task = tasks.ranges.task[tasks.ranges.task[0].blocks > 0 ? 0 : 1];
  if (task.matrix.type == ElementType::c64) {
    find_norms<double>(tasks);
  } else {
    find_norms<float>(tasks);
  }
}

}  // namespace kintsugi::core::cuda
