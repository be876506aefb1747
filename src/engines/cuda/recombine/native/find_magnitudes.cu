// Least and largest magnitudes of both operands of a native product, or of its sums. They may prove that no
// sum underflowed or overflowed. With few inner indices the operands are read in less time than the sums;
// sums are read here if the tiles of finish_native would leave many threads idle.
#include <limits>

#include "base/view.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/native/finish_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int loads_in_flight = 8;
constexpr int load_bytes = 16;  // of a load from aligned memory; other loads read one number

// Bits of a number's magnitude as an integer; these integers are ordered as the magnitudes are.
template <class Real>
struct MagnitudeBits;
template <>
struct MagnitudeBits<float> {
  using Bits = std::uint32_t;
  static constexpr Bits infinity = 0x7f800000;
  __device__ static Bits of(float x) { return __float_as_uint(x) & 0x7fffffff; }
  __device__ static double value(Bits bits) { return __uint_as_float(bits); }
};
template <>
struct MagnitudeBits<double> {
  using Bits = unsigned long long;
  static constexpr Bits infinity = 0x7ff0000000000000;
  __device__ static Bits of(double x) { return __double_as_longlong(x) & 0x7fffffffffffffff; }
  __device__ static double value(Bits bits) { return __longlong_as_double(static_cast<long long>(bits)); }
};

// Least and largest magnitude of the numbers seen so far, as bits.
template <class Real>
struct MagnitudeExtremes {
  using Bits = typename MagnitudeBits<Real>::Bits;
  static constexpr Bits infinity = MagnitudeBits<Real>::infinity;

  Bits least;
  Bits largest;
  int has_special;

  __device__ void add(Real x, bool zero_is_special) {
    const Bits bits = MagnitudeBits<Real>::of(x);
    if (bits >= infinity || (bits == 0 && zero_is_special)) {
      has_special = 1;
    } else if (bits != 0) {
      least = min(least, bits);
      largest = max(largest, bits);
    }
  }
  __device__ void add(const MagnitudeExtremes& other) {
    least = min(least, other.least);
    largest = max(largest, other.largest);
    has_special |= other.has_special;
  }
  // Returns the extremes of the lane whose number differs in the bits `lane_mask`.
  __device__ MagnitudeExtremes of_partner(int lane_mask) const {
    return {__shfl_xor_sync(~0U, least, lane_mask), __shfl_xor_sync(~0U, largest, lane_mask),
            __shfl_xor_sync(~0U, has_special, lane_mask)};
  }
};

// Threads of a thread block that read one line of `loads` loads together; the block reads threads /
// threads_per_line() lines at once.
__device__ int threads_per_line(std::int64_t loads) {
  int result = 32;
  while (result < MagnitudesTask::threads && result < loads) result *= 2;
  return result;
}

template <class Real>
__device__ bool is_aligned(const OperandLines& operand) {
  constexpr std::int64_t numbers = load_bytes / sizeof(Real);
  return reinterpret_cast<std::uintptr_t>(operand.data) % load_bytes == 0 &&
         (operand.lines == 1 || operand.stride % numbers == 0) &&
         (operand.items == 1 || operand.item_stride % numbers == 0);
}

// Reads Count numbers, of which the first `left` exist; the others become `missing`.
template <int Count, class Real>
__device__ void load_numbers(const Real* source, std::int64_t left, Real missing, Real (&numbers)[Count]) {
  if constexpr (Count > 1) {
    if (left >= Count) {
      const uint4 bits = __ldg(reinterpret_cast<const uint4*>(source));
      static_assert(sizeof numbers == sizeof bits);
      memcpy(numbers, &bits, sizeof bits);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < Count; ++i) numbers[i] = i < left ? source[i] : missing;
}

// Order in which the threads of a thread block read an operand, `Count` numbers in a load.
template <int Count>
struct ReadingOrder {
  int width;            // threads that read a line together
  int lines_at_once;    // lines that the block reads with one load of each thread
  int loads_of_line;    // loads with which the threads of a line read all of it, at most loads_in_flight
  int lines_of_thread;  // lines that a thread reads in a visit; more than one if lines are short
  std::int64_t parts;   // visits that share a long line
  std::int64_t groups;  // groups of lines, each for one visit or `parts` of them

  __device__ explicit ReadingOrder(const OperandLines& operand) {
    width = threads_per_line(divide_up(operand.length, std::int64_t{Count}));
    lines_at_once = MagnitudesTask::threads / width;
    const std::int64_t loads = divide_up(operand.length, std::int64_t{Count} * width);
    loads_of_line = static_cast<int>(min(loads, std::int64_t{loads_in_flight}));
    lines_of_thread = loads_in_flight / loads_of_line;
    parts = divide_up(loads, std::int64_t{loads_in_flight});
    groups = divide_up(operand.lines, std::int64_t{lines_at_once} * lines_of_thread);
  }
};

// Loads the thread's numbers of a visit. Visits are numbered by parts of lines, then groups of lines, then
// batch items.
template <class Real, int Count>
__device__ void load_visit(const OperandLines& operand, const ReadingOrder<Count>& order, std::int64_t visit,
                           Real missing, Real (&numbers)[loads_in_flight][Count]) {
  const int lane = static_cast<int>(threadIdx.x) % order.width;
  const int line_of_thread = static_cast<int>(threadIdx.x) / order.width;
  const std::int64_t item = visit / (order.parts * order.groups);
  const std::int64_t group = visit / order.parts % order.groups;
  const std::int64_t begin = (visit % order.parts * loads_in_flight * order.width + lane) * Count;
  std::int64_t line = group * order.lines_at_once * order.lines_of_thread + line_of_thread;
  const Real* line_source =
      static_cast<const Real*>(operand.data) + item * operand.item_stride + line * operand.stride + begin;
  const Real* source = line_source;
  std::int64_t left = operand.length - begin;
  int loads_left_of_line = order.loads_of_line;
#pragma unroll
  for (int i = 0; i < loads_in_flight; ++i) {
    const bool exists = i < order.loads_of_line * order.lines_of_thread && line < operand.lines;
    load_numbers<Count>(source, exists ? left : 0, missing, numbers[i]);
    source += order.width * Count;
    left -= order.width * Count;
    if (--loads_left_of_line > 0) continue;
    line += order.lines_at_once;
    line_source += order.lines_at_once * operand.stride;
    source = line_source;
    left = operand.length - begin;
    loads_left_of_line = order.loads_of_line;
  }
}

// Extremes of the thread's share of an operand that thread blocks 0 ... blocks - 1 read together, this one
// being `block`. Thread blocks take visits in turn, the last one first, because the product may have left the
// operand's end in L2.
template <class Real, int Count>
__device__ MagnitudeExtremes<Real> extremes_of_thread(const OperandLines& operand, bool zeros_are_special,
                                                      int block, int blocks) {
  // If zeros are special, the numbers are sums, of which only the least magnitude is used. Otherwise they are
  // elements of operands. A number after the end must change no magnitude that is used.
  const Real missing = zeros_are_special ? std::numeric_limits<Real>::max() : Real(0);
  const ReadingOrder<Count> order(operand);
  MagnitudeExtremes<Real> extremes{MagnitudeExtremes<Real>::infinity, 0, 0};
#pragma unroll 1
  for (std::int64_t visit = order.parts * order.groups * operand.items - 1 - block; visit >= 0;
       visit -= blocks) {
    Real numbers[loads_in_flight][Count];
    load_visit(operand, order, visit, missing, numbers);
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i) {
#pragma unroll
      for (const Real x : numbers[i]) extremes.add(x, zeros_are_special);
    }
  }
  return extremes;
}

template <class Real>
__device__ void find_magnitudes(const MagnitudesTask& task) {
  launch_dependents();
  grid_dependency_wait();
  constexpr int warps = MagnitudesTask::threads / 32;
  __shared__ MagnitudeExtremes<Real> warp_extremes[warps];
  const int block = static_cast<int>(blockIdx.x);
  const bool reads_a = block < task.blocks_of_a;
  const OperandLines& operand = task.operands[reads_a ? 0 : 1];
  const int first = reads_a ? 0 : task.blocks_of_a;
  const int blocks = reads_a ? task.blocks_of_a : MagnitudesTask::blocks - task.blocks_of_a;
  constexpr int aligned_count = load_bytes / sizeof(Real);
  MagnitudeExtremes<Real> extremes =
      is_aligned<Real>(operand)
          ? extremes_of_thread<Real, aligned_count>(operand, task.zeros_are_special, block - first, blocks)
          : extremes_of_thread<Real, 1>(operand, task.zeros_are_special, block - first, blocks);
#pragma unroll
  for (int lane_mask = 1; lane_mask < 32; lane_mask *= 2) extremes.add(extremes.of_partner(lane_mask));
  if (threadIdx.x % 32 == 0) warp_extremes[threadIdx.x / 32] = extremes;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll 1
  for (int warp = 1; warp < warps; ++warp) extremes.add(warp_extremes[warp]);
  task.records[block] = {MagnitudeBits<Real>::value(extremes.least),
                         MagnitudeBits<Real>::value(extremes.largest), extremes.has_special};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(MagnitudesTask::threads)
    find_magnitudes_f32(const __grid_constant__ MagnitudesTask task) {
  find_magnitudes<float>(task);
}
extern "C" __global__ void __launch_bounds__(MagnitudesTask::threads)
    find_magnitudes_f64(const __grid_constant__ MagnitudesTask task) {
  find_magnitudes<double>(task);
}

}  // namespace kintsugi::core::cuda
