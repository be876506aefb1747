// Exponents and flags of all vectors, for the choice of a rung.
#include <bit>
#include <limits>

#include "engines/cuda/common/order.cuh"
#include "engines/cuda/splits/alpha.cuh"
#include "engines/cuda/splits/operands.cuh"
#include "engines/cuda/splits/ranges_task.hpp"
#include "engines/cuda/splits/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// What `sum_vectors` makes of a range.
template <class T>
struct RangeOfVector {
  const RangesTask& task;

  __device__ Magnitudes<T> begin(std::int64_t) const { return {}; }
  __device__ static void add_over_lanes(Magnitudes<T>& magnitudes, unsigned lanes) {
    cuda::add_over_lanes(magnitudes, lanes);
  }
  __device__ void end(std::int64_t vector, const Magnitudes<T>& magnitudes) const {
    task.ranges[entry_of_block() * task.matrix.vectors() + vector] = magnitudes.range();
  }
};

// The same with the exponents' sum: a number of them, counted from the least one there is.
template <class T>
struct MagnitudesAndExponents {
  using Bits = typename Magnitudes<T>::Bits;
  static constexpr int digits = std::numeric_limits<T>::digits;

  Magnitudes<T> magnitudes;
  std::uint64_t exponents = 0;
  std::uint64_t elements = 0;

  template <int count>
  __device__ void add(const T (&x)[count]) {
    magnitudes.add(x);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Bits magnitude = std::bit_cast<Bits>(x[i]) & Magnitudes<T>::without_sign;
      const bool counts = magnitude - 1 < Magnitudes<T>::infinity - 1;  // neither zero nor special
      exponents += counts ? magnitude >> (digits - 1) : 0;
      elements += counts ? 1 : 0;
    }
  }
  __device__ void add(const MagnitudesAndExponents& other) {
    magnitudes.add(other.magnitudes);
    exponents += other.exponents;
    elements += other.elements;
  }
  __device__ std::int32_t typical() const {
    constexpr int least = std::numeric_limits<T>::min_exponent - 2;  // subnormal numbers count as this
    return elements == 0 ? 0 : static_cast<std::int32_t>(exponents / elements) + least;
  }
};

template <class T>
struct RangeAndExponentOfVector {
  const RangesTask& task;

  __device__ MagnitudesAndExponents<T> begin(std::int64_t) const { return {}; }
  __device__ static void add_over_lanes(MagnitudesAndExponents<T>& sum, unsigned lanes) {
    cuda::add_over_lanes(sum.magnitudes, lanes);
    for (unsigned lane = 1; lane < 32; lane <<= 1) {
      if ((lanes & lane) == 0) continue;
      sum.exponents += __shfl_xor_sync(~0U, sum.exponents, lane);
      sum.elements += __shfl_xor_sync(~0U, sum.elements, lane);
    }
  }
  __device__ void end(std::int64_t vector, const MagnitudesAndExponents<T>& sum) const {
    RangeOfVector<T>{task}.end(vector, sum.magnitudes);
    task.norms[entry_of_block() * task.matrix.vectors() + vector].typical = sum.typical();
  }
};

template <class T>
__device__ void find_ranges_of(const RangesTask& task, std::int64_t first) {
  const std::int64_t entry = task.entry + entry_of_block();
  if (task.norms == nullptr) {
    sum_vectors<T>(task.matrix, entry, first, RangeOfVector<T>{task});
  } else {
    sum_vectors<T>(task.matrix, entry, first, RangeAndExponentOfVector<T>{task});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_ranges(const __grid_constant__ RangesTasks tasks) {
  await_others();
  if (is_zero(tasks.alpha)) return;
  const bool second = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[second ? 1 : 0];
  const std::int64_t first = (blockIdx.x - (second ? tasks.task[0].blocks : 0)) * ranges_vectors;
  const bool wide = task.matrix.type == EntryType::f64 || task.matrix.type == EntryType::c64;
  if (wide) {
    find_ranges_of<double>(task, first);
  } else {
    find_ranges_of<float>(task, first);
  }
}

}  // namespace kintsugi::core::cuda
