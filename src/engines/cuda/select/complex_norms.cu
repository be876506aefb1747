// Ranges and norms of complex operands, each element read once from memory. Thread blocks that stay on their
// SM go through the work items: a few rows or columns each. While they find a vector's norm, the first
// elements of the next one are on their way to shared memory.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/complex_vectors.cuh"

namespace kintsugi::core::cuda {

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
  if (is_zero(tasks.ranges.alpha)) return;
  const RangesTask& task = tasks.ranges.task[tasks.ranges.task[0].blocks > 0 ? 0 : 1];
  if (task.matrix.type == ElementType::c64) {
    find_norms<double>(tasks);
  } else {
    find_norms<float>(tasks);
  }
}

}  // namespace kintsugi::core::cuda
