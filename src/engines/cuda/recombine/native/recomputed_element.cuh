// Recomputation of one element of C whose native sum may have been spoiled by underflow, overflow or special
// values. One thread or one warp computes it.
#pragma once

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/scaled_sum.hpp"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Combines the values of lanes 0 ... Lanes - 1 of a warp. All of these lanes get the result.
template <int Lanes, class Combine, class Value>
__device__ Value over_lanes(Value x, const Combine& combine) {
#pragma unroll
  for (int lane = 1; lane < Lanes; lane <<= 1) x = combine(x, __shfl_xor_sync(~0U, x, lane));
  return x;
}
template <int Lanes>
__device__ double sum_over(double x) {
  return over_lanes<Lanes>(x, [](double a, double b) { return a + b; });
}

// Recomputes an FP32 element in FP64. There products are exact, and neither products nor sums underflow or
// overflow. NaN and infinities are treated by IEEE 754.
template <class T, int Lanes>
__device__ T recomputed_fp32(const OperandView<T>& a, const OperandView<T>& b, std::int64_t i, std::int64_t j,
                             const Scalars<T>& scalars, const T* old, int lane) {
  double sum[parts_of<T>] = {};
#pragma unroll 1
  for (std::int64_t p = lane; p < a.columns; p += Lanes) {
    const double x = a(i, p);
#pragma unroll
    for (int part = 0; part < parts_of<T>; ++part) sum[part] += x * double{b(parts_of<T> * j + part, p)};
  }
#pragma unroll
  for (int part = 0; part < parts_of<T>; ++part) sum[part] = sum_over<Lanes>(sum[part]);
  if constexpr (is_complex<T>) {
    return epilogue(Complex<double>(sum[0], sum[1]), scalars.alpha, scalars.beta, old);
  } else {
    return epilogue(sum[0], scalars.alpha, scalars.beta, old);
  }
}

// Sum of the products of row i and vector v, both FP64, in units of the largest product. Products with a
// factor that is NaN or infinite are added to `special` instead.
template <int Lanes, class View>
__device__ ScaledNumber scaled_sum(const View& a, const View& b, std::int64_t i, std::int64_t v, int lane,
                                   double& special) {
  int highest = ScaledNumber::lowest;
#pragma unroll 1
  for (std::int64_t p = lane; p < a.columns; p += Lanes) {
    const double x = a(i, p);
    const double y = b(v, p);
    if (x - x != 0 || y - y != 0) {
      special += x * y;
    } else if (x != 0 && y != 0) {
      highest = std::max(highest, exponent_of(x) + exponent_of(y));
    }
  }
  special = sum_over<Lanes>(special);
  highest = over_lanes<Lanes>(highest, [](int e, int f) { return std::max(e, f); });
  double sum = 0;
#pragma unroll 1
  for (std::int64_t p = lane; p < a.columns; p += Lanes) {
    const double x = a(i, p);
    const double y = b(v, p);
    if (x - x == 0 && y - y == 0) sum += in_units_of(scaled_product(x, y), highest);
  }
  return {sum_over<Lanes>(sum), highest};
}

// Adds `factor` times the sum of the products of row i and vector v to `total`, as its term `Position`. Each
// product is rounded once, in units of the largest one.
template <int Position, int Lanes, class View>
__device__ void add_scaled_sum(ScaledTotal& total, const View& a, const View& b, std::int64_t i,
                               std::int64_t v, double factor, int lane) {
  double special = 0;
  const ScaledNumber sum = scaled_sum<Lanes>(a, b, i, v, lane, special);
  if (special != 0) {
    total.add<Position>(special, factor);
  } else {
    total.add<Position>(sum, factor);
  }
}

// Recomputes an FP64 element. The exponents of its products may be any.
template <class T, int Lanes>
__device__ T recomputed_fp64(const OperandView<T>& a, const OperandView<T>& b, std::int64_t i, std::int64_t j,
                             const Scalars<T>& scalars, const T* old, int lane) {
  const T& alpha = scalars.alpha;
  const T& beta = scalars.beta;
  if constexpr (is_complex<T>) {
    double parts[2];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const double sign = part == 0 ? -1 : 1;  // sign of terms with an imaginary part of alpha or beta
      ScaledTotal total;
      add_scaled_sum<0, Lanes>(total, a, b, i, 2 * j + part, alpha.real(), lane);
      if (alpha.imag() != 0)
        add_scaled_sum<1, Lanes>(total, a, b, i, 2 * j + 1 - part, sign * alpha.imag(), lane);
      if (old != nullptr) {
        total.add<2>(part == 0 ? old->real() : old->imag(), beta.real());
        if (beta.imag() != 0) total.add<3>(part == 0 ? old->imag() : old->real(), sign * beta.imag());
      }
      parts[part] = total.value<double>();
    }
    return {parts[0], parts[1]};
  } else {
    ScaledTotal total;
    add_scaled_sum<0, Lanes>(total, a, b, i, j, alpha, lane);
    if (old != nullptr) total.add<2>(*old, beta);
    return total.value<double>();
  }
}

// Element (i, j) of alpha A B + beta C, within the contract of its type whatever the exponents are. `old` is
// the element of C; nullptr if beta is 0. Lanes 0 ... Lanes - 1 of a warp must call it together, each with
// its number `lane`; all get the element.
template <class T, int Lanes>
__device__ T recomputed_element(const OperandView<T>& a, const OperandView<T>& b, std::int64_t i,
                                std::int64_t j, const Scalars<T>& scalars, const T* old, int lane) {
  if constexpr (std::is_same_v<RealOf<T>, float>) {
    return recomputed_fp32<T, Lanes>(a, b, i, j, scalars, old, lane);
  } else {
    return recomputed_fp64<T, Lanes>(a, b, i, j, scalars, old, lane);
  }
}

}  // namespace kintsugi::core::cuda
