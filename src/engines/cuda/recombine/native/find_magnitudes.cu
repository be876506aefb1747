// Least and largest magnitudes of both operands of a native product, which may prove that no sum underflows
// or overflows. With few inner indices the operands are read in less time than the sums.
#include "base/view.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/native/finish_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int loads_in_flight = 8;

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

  __device__ void add(Real x) {
    const Bits bits = MagnitudeBits<Real>::of(x);
    if (bits >= infinity) {
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

// Threads of a thread block that read one line together; the block reads threads / threads_per_line() lines
// at once.
__device__ int threads_per_line(std::int64_t length) {
  int result = 32;
  while (result < MagnitudesTask::threads && result < length) result *= 2;
  return result;
}

// Extremes of the thread's share of an operand that thread blocks 0 ... blocks - 1 read together, this one
// being `block`.
template <class Real>
__device__ MagnitudeExtremes<Real> extremes_of_thread(const OperandLines& operand, int block, int blocks) {
  const int width = threads_per_line(operand.length);
  const int lines_at_once = MagnitudesTask::threads / width;
  const std::int64_t chunk = std::int64_t{width} * loads_in_flight;
  const std::int64_t chunks = divide_up(operand.length, chunk);
  const std::int64_t line_groups = divide_up(operand.lines, std::int64_t{lines_at_once});
  const int lane = static_cast<int>(threadIdx.x) % width;
  const int line_in_group = static_cast<int>(threadIdx.x) / width;
  MagnitudeExtremes<Real> extremes{MagnitudeExtremes<Real>::infinity, 0, 0};
  // Thread blocks take chunks in turn: first all chunks of a group of lines, then those of the next group,
  // then those of the next batch item.
#pragma unroll 1
  for (std::int64_t index = block; index < chunks * line_groups * operand.items; index += blocks) {
    const std::int64_t line = index / chunks % line_groups * lines_at_once + line_in_group;
    if (line >= operand.lines) continue;
    const std::int64_t begin = index % chunks * chunk + lane;
    const std::int64_t item = index / (chunks * line_groups);
    const Real* first_number =
        static_cast<const Real*>(operand.data) + item * operand.item_stride + line * operand.stride;
    Real numbers[loads_in_flight];
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i) {
      const std::int64_t position = begin + i * width;
      numbers[i] = position < operand.length ? first_number[position] : Real(0);
    }
#pragma unroll
    for (const Real x : numbers) extremes.add(x);
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
  MagnitudeExtremes<Real> extremes =
      reads_a ? extremes_of_thread<Real>(task.operands[0], block, task.blocks_of_a)
              : extremes_of_thread<Real>(task.operands[1], block - task.blocks_of_a,
                                         MagnitudesTask::blocks - task.blocks_of_a);
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
