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
constexpr int warps = threads / 32;
constexpr int thread_elements = complex_norms_chunk / threads;  // of a chunk

// Vectors of a work item.
struct WorkItem {
  const RangesTask& task;
  int width_bits;  // log2 of their number
  std::uint32_t item;
  std::int64_t first_vector;

  __device__ WorkItem(const ComplexNormsTasks& tasks, std::uint32_t work)
      : WorkItem(tasks, work, static_cast<std::uint32_t>(tasks.ranges.task[0].blocks),
                 static_cast<std::uint32_t>(tasks.ranges.task[0].blocks + tasks.ranges.task[1].blocks)) {}

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
  __device__ WorkItem(const ComplexNormsTasks& tasks, std::uint32_t work, std::uint32_t blocks,
                      std::uint32_t all_blocks)
      : WorkItem(tasks, work < all_blocks ? 0 : work / all_blocks, work < all_blocks ? work : work % all_blocks,
                 blocks, 0) {}
  __device__ WorkItem(const ComplexNormsTasks& tasks, std::uint32_t batch_item, std::uint32_t block,
                      std::uint32_t blocks, int)
      : task(tasks.ranges.task[block < blocks ? 0 : 1]), width_bits(tasks.width_bits[block < blocks ? 0 : 1]),
        item(batch_item),
        first_vector(static_cast<std::int64_t>(block < blocks ? block : block - blocks) << width_bits) {}
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
    const std::int64_t first =
        (work.first_vector + index) * matrix.row_stride + line * matrix.column_stride;
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
  const auto numbers = static_cast<std::uint32_t>(2 * work.chunks() * thread_elements << work.line_bits());
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
    bool is_general = false;  // the same in all threads
    for (int v = 0; v < work.width(); ++v) is_general = is_general || first[v].template is_general<T>();
    if (is_general) find_general_norms<T>(tasks, i, first);
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
