// Products of FP16 slices with the sums of a matrix unit, bit for bit as the reference engine's models have
// them (engines/reference/models.hpp): those of an A100 and of AMD CDNA 2. One thread computes one element
// of C. Slices of A (m,k) and of B (k,n) are row-major, as are FP32 products C (m,n); m, n and k are
// multiples of 16.
#include <cuda_fp16.h>

#include <cstdint>

namespace kintsugi::lab {

namespace {

constexpr int edge =
    16;  // of a thread block's tile of C, and inner indices that are in shared memory at once

// ---------------------------------------------------------------- an A100

constexpr int fraction_bits = 10;  // of FP16
constexpr int extra_bits = 1;      // kept of an addend below the last place of the largest
constexpr int least_alignment = -132;
constexpr int no_exponent = -4096;  // of zero

struct Number {  // significand * 2^(exponent - fraction_bits)
  int significand;
  int exponent;
};

__device__ Number decoded(std::uint16_t bits) {
  const int field = bits >> fraction_bits & 31, fraction = bits & 1023;
  Number number{field > 0 ? fraction | 1024 : fraction, field > 0 ? field - 15 : -14};
  if (number.significand == 0) number.exponent = no_exponent;
  if ((bits & 0x8000) != 0) number.significand = -number.significand;
  return number;
}

// Returns value * 2^exponent, truncated to FP32.
__device__ float truncated(std::int64_t value, int exponent) {
  if (value == 0) return 0;
  const std::uint32_t sign = value < 0 ? 0x80000000 : 0;
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  const int leading = 63 - __clzll(static_cast<long long>(magnitude));
  const int drop = max(leading - 23, -149 - exponent);
  const std::uint64_t kept = drop >= 0 ? magnitude >> min(drop, 63) : magnitude << -drop;
  if (kept == 0) return 0;
  const int field = max(leading + exponent, -126) + 127;
  return __uint_as_float(sign |
                         ((static_cast<std::uint32_t>(field - 1) << 23) + static_cast<std::uint32_t>(kept)));
}

struct A100 {
  using Element = Number;
  static constexpr int block = 8;
  static __device__ Element load(std::uint16_t bits) { return decoded(bits); }
  static __device__ float add(const Element (&a)[block], const Element (&b)[block], float sum) {
    constexpr int shift = 23 + extra_bits - 2 * fraction_bits;
    int significand[block + 1], exponent[block + 1];
    const std::uint32_t bits = __float_as_uint(sum);
    const int field = static_cast<int>(bits >> 23 & 255);
    const auto fraction = static_cast<int>(bits & 0x7fffff);
    significand[block] = (field > 0 ? fraction | 0x800000 : fraction) << extra_bits;
    exponent[block] = significand[block] == 0 ? no_exponent : max(field, 1) - 127;
    if (bits >> 31 != 0) significand[block] = -significand[block];
    int largest = max(exponent[block], least_alignment);
#pragma unroll
    for (int p = 0; p < block; ++p) {
      significand[p] = a[p].significand * b[p].significand * (1 << shift);
      exponent[p] = a[p].exponent + b[p].exponent;
      largest = max(largest, exponent[p]);
    }
    std::int64_t total = 0;
#pragma unroll
    for (int p = 0; p <= block; ++p) {
      const int magnitude = abs(significand[p]) >> min(largest - exponent[p], 31);
      total += significand[p] < 0 ? -magnitude : magnitude;
    }
    return truncated(total, largest - 23 - extra_bits);
  }
};

// ---------------------------------------------------------------- CDNA 2

struct Cdna2 {
  using Element = float;
  static constexpr int block = 4;
  static __device__ float flushed(float value) {
    return (__float_as_uint(value) & 0x7f800000) == 0 ? copysignf(0.0f, value) : value;
  }
  static __device__ Element load(std::uint16_t bits) {
    const float value = __half2float(__ushort_as_half(bits));
    return fabsf(value) < 0x1p-14f ? 0.0f : value;
  }
  static __device__ float add(const Element (&a)[block], const Element (&b)[block], float sum) {
    float products[block];
#pragma unroll
    for (int p = 0; p < block; ++p) products[p] = a[p] * b[p];
    const float first = flushed(products[0] + products[1]), second = flushed(products[2] + products[3]);
    return flushed(flushed(sum) + flushed(first + second));
  }
};

// ---------------------------------------------------------------- the schemes

// The sums of a scheme and how 16 inner indices are added to them: slices (a, b) of every product. The
// result is the sum of 2^exponent times each, added in FP64.
struct Wmma {
  static constexpr int slices = 1, sums = 1;
  static __device__ int exponent(int) { return 0; }
  template <class Add>
  static __device__ void step(float (&sum)[sums], const Add& add) {
    sum[0] = add(0, 0, sum[0]);
  }
};

struct Markidis {
  static constexpr int slices = 2, sums = 1;
  static __device__ int exponent(int) { return 0; }
  template <class Add>
  static __device__ void step(float (&sum)[sums], const Add& add) {
    sum[0] = add(1, 1, sum[0]);
    sum[0] = add(1, 0, sum[0]);
    sum[0] = add(0, 1, sum[0]);
    sum[0] = add(0, 0, sum[0]);
  }
};

struct OotomoOutside {  // sums of 16 are added outside the unit, to nearest
  static constexpr int slices = 2, sums = 2;
  static __device__ int exponent(int s) { return s == 0 ? 0 : -11; }
  template <class Add>
  static __device__ void step(float (&sum)[sums], const Add& add) {
    sum[1] += add(0, 1, add(1, 0, 0.0f));
    sum[0] += add(0, 0, 0.0f);
  }
};

struct OotomoInside {  // every product has a sum of its own
  static constexpr int slices = 2, sums = 3;
  static __device__ int exponent(int s) { return s == 0 ? 0 : -11; }
  template <class Add>
  static __device__ void step(float (&sum)[sums], const Add& add) {
    sum[0] = add(0, 0, sum[0]);
    sum[1] = add(0, 1, sum[1]);
    sum[2] = add(1, 0, sum[2]);
  }
};

struct LeGemm {
  static constexpr int slices = 2, sums = 2;
  static __device__ int exponent(int s) { return s == 0 ? 0 : -10; }
  template <class Add>
  static __device__ void step(float (&sum)[sums], const Add& add) {
    sum[0] = add(0, 0, sum[0]);
    sum[1] = add(0, 1, sum[1]);
    sum[1] = add(1, 0, sum[1]);
  }
};

struct Matrices {
  const std::uint16_t* a[2];
  const std::uint16_t* b[2];
  float* c;
  std::int64_t n;
  std::int64_t k;
};

template <class Unit, class Scheme>
__device__ void multiply(const Matrices& x) {
  __shared__ typename Unit::Element a[Scheme::slices][edge][edge], b[Scheme::slices][edge][edge];
  const int i = static_cast<int>(threadIdx.x) / edge, j = static_cast<int>(threadIdx.x) % edge;
  const std::int64_t columns = x.n / edge;
  const std::int64_t row = blockIdx.x / columns * edge + i, column = blockIdx.x % columns * edge + j;
  float sum[Scheme::sums] = {};
  const auto add = [&](int of_a, int of_b, float start) {
    typename Unit::Element left[Unit::block], right[Unit::block];
#pragma unroll
    for (int first = 0; first < edge; first += Unit::block) {
#pragma unroll
      for (int p = 0; p < Unit::block; ++p) {
        left[p] = a[of_a][i][first + p];
        right[p] = b[of_b][first + p][j];
      }
      start = Unit::add(left, right, start);
    }
    return start;
  };
  for (std::int64_t k = 0; k < x.k; k += edge) {
#pragma unroll
    for (int s = 0; s < Scheme::slices; ++s) {
      a[s][i][j] = Unit::load(x.a[s][row * x.k + k + j]);
      b[s][i][j] = Unit::load(x.b[s][(k + i) * x.n + column]);
    }
    __syncthreads();
    Scheme::step(sum, add);
    __syncthreads();
  }
  double total = 0;
#pragma unroll
  for (int s = 0; s < Scheme::sums; ++s) total += ldexp(static_cast<double>(sum[s]), Scheme::exponent(s));
  x.c[row * x.n + column] = static_cast<float>(total);
}

}  // namespace

#define KINTSUGI_UNIT(unit, Unit)                                                                   \
  extern "C" __global__ void __launch_bounds__(edge* edge) unit##_fp16(const Matrices x) {          \
    multiply<Unit, Wmma>(x);                                                                        \
  }                                                                                                 \
  extern "C" __global__ void __launch_bounds__(edge* edge) unit##_markidis(const Matrices x) {      \
    multiply<Unit, Markidis>(x);                                                                    \
  }                                                                                                 \
  extern "C" __global__ void __launch_bounds__(edge* edge) unit##_ootomo(const Matrices x) {        \
    multiply<Unit, OotomoOutside>(x);                                                               \
  }                                                                                                 \
  extern "C" __global__ void __launch_bounds__(edge* edge) unit##_ootomo_inside(const Matrices x) { \
    multiply<Unit, OotomoInside>(x);                                                                \
  }                                                                                                 \
  extern "C" __global__ void __launch_bounds__(edge* edge) unit##_legemm(const Matrices x) {        \
    multiply<Unit, LeGemm>(x);                                                                      \
  }

KINTSUGI_UNIT(a100, A100)
KINTSUGI_UNIT(cdna2, Cdna2)

// Computes C = A B (n,n) of FP32, each sum by fma over ascending k.
extern "C" __global__ void __launch_bounds__(edge* edge)
    sequential_sums(float* c, const float* a, const float* b, std::int64_t n) {
  __shared__ float left[edge][edge], right[edge][edge];
  const int i = static_cast<int>(threadIdx.x) / edge, j = static_cast<int>(threadIdx.x) % edge;
  const std::int64_t row = blockIdx.x / (n / edge) * edge + i, column = blockIdx.x % (n / edge) * edge + j;
  float sum = 0;
  for (std::int64_t k = 0; k < n; k += edge) {
    left[i][j] = a[row * n + k + j];
    right[i][j] = b[(k + i) * n + column];
    __syncthreads();
#pragma unroll
    for (int p = 0; p < edge; ++p) sum = fmaf(left[i][p], right[p][j], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Splits elements into FP16 slices: to nearest or, with `truncates`, towards zero; the residual is multiplied
// by `scale`. With `copies` the high slice has the leading bits of normal numbers alone (bit-cut).
extern "C" __global__ void slice_elements(__half* high, __half* low, const float* x, std::int64_t count,
                                          float scale, bool truncates, bool copies) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const float value = x[i];
    high[i] = truncates ? __float2half_rz(value) : __float2half_rn(value);
    if (copies && fabsf(value) < 0x1p-14f) high[i] = __float2half_rn(0.0f);
    const float residual = (value - __half2float(high[i])) * scale;
    low[i] = truncates ? __float2half_rz(residual) : __float2half_rn(residual);
  }
}

}  // namespace kintsugi::lab
