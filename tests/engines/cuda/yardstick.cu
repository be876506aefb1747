// test_kernels.py compiles this file to measure the speed of this machine's compiler: wide integers and
// doubles in unrolled loops, as recombinations have them. Its compile time is the unit of the time budgets,
// so the file must not change.
#include <cstdint>

template <int limbs>
__device__ void add_multiple(std::uint64_t (&sum)[limbs], const std::uint64_t (&x)[limbs],
                             std::uint64_t factor) {
  std::uint64_t carry = 0;
#pragma unroll
  for (int l = 0; l < limbs; ++l) {
    const unsigned __int128 next = static_cast<unsigned __int128>(x[l]) * factor + sum[l] + carry;
    sum[l] = static_cast<std::uint64_t>(next);
    carry = static_cast<std::uint64_t>(next >> 64);
  }
}

template <int limbs, int terms>
__device__ double sum_of(const std::uint64_t* x) {
  std::uint64_t sum[limbs] = {};
#pragma unroll
  for (int t = 0; t < terms; ++t) {
    std::uint64_t limb[limbs];
#pragma unroll
    for (int l = 0; l < limbs; ++l) limb[l] = x[t * limbs + l];
    add_multiple(sum, limb, x[t] >> t % 7);
  }
  double result = 0;
#pragma unroll
  for (int l = 0; l < limbs; ++l) result = result * 0x1p-64 + static_cast<double>(sum[l]);
  return result;
}

extern "C" __global__ void yardstick(const std::uint64_t* x, double* result) {
  result[0] = sum_of<2, 24>(x);
  result[1] = sum_of<4, 24>(x);
  result[2] = sum_of<6, 24>(x);
  result[3] = sum_of<8, 24>(x);
}
