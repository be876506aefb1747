#include "split/successive.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "formats/formats.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Returns the stored form of an integer: a bit pattern in fp16 slices, the value in panels (float) and fp64
// slices.
template <class Element>
Element stored(std::int64_t integer) {
  if constexpr (std::is_same_v<Element, std::uint16_t>) {
    return static_cast<std::uint16_t>(encode(fp16, static_cast<double>(integer)));
  } else {
    return static_cast<Element>(integer);
  }
}

// Clears the elements of vector v of slice s from index `filled` on, including padding.
template <class Element>
void clear(const Slices& slices, int s, std::int64_t v, std::int64_t filled) {
  Element* vector = slices.vector<Element>(s, v);
  const std::int64_t stride = slices.element_stride();
  for (std::int64_t p = filled; p < slices.vector_stride(); ++p) vector[p * stride] = Element{};
}

template <class Element>
void take_slice_of_vector(const SuccessiveSplit& split, int s, std::int64_t v, const double* weights,
                          Scaled* weighted) {
  const std::int64_t k = split.slices.k;
  Element* slice = split.slices.vector<Element>(s, v);
  const std::int64_t stride = split.slices.element_stride();
  const std::int32_t top = split.tops[v];
  if (top == no_residual) {
    clear<Element>(split.slices, s, v, 0);
    split.exponents(s, v) = s == 0 ? 0 : split.exponents(s - 1, v);
    if (weights != nullptr) weighted[v] = {};
    return;
  }
  const int grid = grid_of(top, split.bits);
  split.exponents(s, v) = grid;
  std::int32_t next_top = no_residual;
  ExactSum sum;
  for (std::int64_t p = 0; p < k; ++p) {
    Residual& residual = split.residuals[v * k + p];
    const std::int64_t integer =
        split.by_sigma ? take_integer_by_sigma(residual, top, split.bits) : take_integer(residual, grid);
    slice[p * stride] = stored<Element>(integer);
    next_top = std::max(next_top, top_of(residual));
    if (weights != nullptr && integer != 0)
      sum.add_product(static_cast<double>(std::abs(integer)), weights[p]);
  }
  clear<Element>(split.slices, s, v, k);
  split.tops[v] = next_top;
  if (weights == nullptr) return;
  weighted[v] = sum.to_scaled();
  if (weighted[v].fraction != 0) weighted[v].exponent += grid;
}

template <class Element>
void take_slice_as(const SuccessiveSplit& split, int s, const double* weights, Scaled* weighted,
                   int threads) {
  for_each_vector_block(split.slices.padded_vectors(), threads, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t v = first; v < last; ++v) {
      if (v < split.slices.vectors) {
        take_slice_of_vector<Element>(split, s, v, weights, weighted);
      } else {
        clear<Element>(split.slices, s, v, 0);
      }
    }
  });
}

}  // namespace

template <class View>
void set_first_residuals(const View& operand, std::span<const VectorRange> ranges,
                         const SuccessiveSplit& split, int threads) {
  for_each_vector_block(operand.rows, threads, [&](std::int64_t first, std::int64_t last) {
    std::fill(split.tops + first, split.tops + last, no_residual);
    for (std::int64_t v = first; v < last; ++v)
      split.exponents(0, v) = 0;  // keeps this value if all elements are zero, since then no slice is taken
    for_each_element(operand, first, last, [&](std::int64_t v, std::int64_t p, auto x) {
      const Residual residual = residual_of(ranges[v].finite() ? static_cast<double>(x) : 0.0);
      split.residuals[v * operand.columns + p] = residual;
      split.tops[v] = std::max(split.tops[v], top_of(residual));
    });
  });
}

bool any_residual(const SuccessiveSplit& split) {
  return std::any_of(split.tops, split.tops + split.slices.vectors,
                     [](std::int32_t top) { return top != no_residual; });
}

void take_slice(const SuccessiveSplit& split, int s, const double* weights, Scaled* weighted, int threads) {
  const Slices& slices = split.slices;
  if (slices.format->id == FormatId::fp64) return take_slice_as<double>(split, s, weights, weighted, threads);
  if (slices.storage == SliceStorage::panels)
    return take_slice_as<float>(split, s, weights, weighted, threads);
  take_slice_as<std::uint16_t>(split, s, weights, weighted, threads);
}

#define INSTANTIATE(View) \
  template void set_first_residuals(const View&, std::span<const VectorRange>, const SuccessiveSplit&, int);
KINTSUGI_FOR_VIEWS(INSTANTIATE)
#undef INSTANTIATE

template <class View>
void sum_vectors(const View& b, std::span<const VectorRange> ranges, double* weights, int threads) {
#pragma omp parallel for num_threads(workers_for(b.columns, threads)) schedule(static)
  for (std::int64_t p = 0; p < b.columns; ++p) {
    const FloatingEnvironment environment;
    ExactSum sum;
    for (std::int64_t v = 0; v < b.rows; ++v) {
      if (ranges[v].finite()) sum.add(std::fabs(static_cast<double>(b(v, p))));
    }
    // Weights are limited to finite numbers. Otherwise the sums of multiply_magnitudes() would be infinite or
    // NaN.
    weights[p] = std::min(sum.to_double(), std::numeric_limits<double>::max());
  }
}

template <class View>
void multiply_magnitudes(const View& a, std::span<const VectorRange> ranges, const double* weights,
                         Scaled* weighted, int threads) {
#pragma omp parallel for num_threads(workers_for(a.rows, threads)) schedule(static)
  for (std::int64_t v = 0; v < a.rows; ++v) {
    const FloatingEnvironment environment;
    ExactSum sum;
    if (ranges[v].finite()) {
      for (std::int64_t p = 0; p < a.columns; ++p)
        sum.add_product(std::fabs(static_cast<double>(a(v, p))), weights[p]);
    }
    weighted[v] = sum.to_scaled();
  }
}

#define INSTANTIATE(View)                                                             \
  template void sum_vectors(const View&, std::span<const VectorRange>, double*, int); \
  template void multiply_magnitudes(const View&, std::span<const VectorRange>, const double*, Scaled*, int);
KINTSUGI_FOR_VIEWS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
