#include "split/rounding_bounds.hpp"

#include <algorithm>
#include <array>

#include "arith/residue/residue.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Elements of one vector that are processed together.
constexpr int lanes = 64;

KINTSUGI_VECTORIZED void add_rounding_bounds(const double* x, TwoFactors factors, double* inexact,
                                             double* magnitudes) {
  for (int e = 0; e < lanes; ++e) {
    const double scaled = x[e] * factors.first * factors.second;
    const double integer = nearest_integer(scaled);
    // A non-zero element far below 1/2 may underflow to zero when it is scaled; it also differs from its
    // integer.
    const int differs = (integer != scaled) | ((integer == 0) & (x[e] != 0));
    inexact[e] += differs;
    magnitudes[e] += integer < 0 ? -integer : integer;
  }
}

// Like add_rounding_bounds(), for double-double numbers, rounded as in split/residues.cpp.
KINTSUGI_VECTORIZED void add_pair_rounding_bounds(const double* high, const double* low, TwoFactors factors,
                                                  double* inexact, double* magnitudes) {
  for (int e = 0; e < lanes; ++e) {
    const double scaled = high[e] * factors.first * factors.second;
    const double upper = nearest_integer(scaled);
    const double remainder = (scaled - upper) + low[e] * factors.first * factors.second;
    const double lower = nearest_integer(remainder);
    // If `scaled` is not an integer, `remainder` is not an integer either, however it was rounded: `low` is
    // less than half of the last place of `high`.
    const int differs =
        (lower != remainder) | ((lower == 0) & (low[e] != 0)) | ((upper == 0) & (high[e] != 0));
    const double integer = upper + lower;
    inexact[e] += differs;
    magnitudes[e] += integer < 0 ? -integer : integer;
  }
}

struct Lanes {
  alignas(64) double inexact[lanes] = {};
  alignas(64) double magnitudes[lanes] = {};
};

RoundingBound total(const Lanes& sums) {
  RoundingBound bound;
  for (int e = 0; e < lanes; ++e) {
    bound.inexact += sums.inexact[e];
    bound.magnitudes += sums.magnitudes[e];
  }
  return bound;
}

template <class View>
void add_vector_rounding_bounds(const View& operand, std::span<const double> inner_factors, std::int64_t v,
                                std::int64_t begin, std::int64_t end, TwoFactors factors, Lanes& sums) {
  alignas(64) double elements[lanes] = {};
  load_elements(operand, inner_factors, v, begin, end, elements);
  add_rounding_bounds(elements, factors, sums.inexact, sums.magnitudes);
}

void add_vector_rounding_bounds(const MatrixView<const DoubleDouble>& operand,
                                std::span<const double> inner_factors, std::int64_t v, std::int64_t begin,
                                std::int64_t end, TwoFactors factors, Lanes& sums) {
  alignas(64) double high[lanes] = {};
  alignas(64) double low[lanes] = {};
  load_elements(operand, inner_factors, v, begin, end, high, low);
  add_pair_rounding_bounds(high, low, factors, sums.inexact, sums.magnitudes);
}

template <class View>
void find_block_rounding_bounds(const View& operand, std::span<const VectorRange> ranges,
                                std::span<const double> inner_factors, std::span<RoundingBound> bounds,
                                std::int64_t first, std::int64_t last) {
  std::array<Lanes, vectors_per_block> sums{};
  for (std::int64_t begin = 0; begin < operand.columns; begin += lanes) {
    const std::int64_t end = std::min(operand.columns, begin + lanes);
    for (std::int64_t v = first; v < last; ++v) {
      add_vector_rounding_bounds(operand, inner_factors, v, begin, end, two_factors(ranges[v].scale),
                                 sums[static_cast<std::size_t>(v - first)]);
    }
  }
  for (std::int64_t v = first; v < last; ++v) bounds[v] = total(sums[static_cast<std::size_t>(v - first)]);
}

}  // namespace

template <class View>
void find_rounding_bounds(const View& operand, std::span<const VectorRange> ranges,
                          std::span<const double> inner_factors, std::span<RoundingBound> bounds,
                          int threads) {
  const std::int64_t blocks = divide_up(operand.rows, vectors_per_block);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * vectors_per_block;
    find_block_rounding_bounds(operand, ranges, inner_factors, bounds, first,
                               std::min(operand.rows, first + vectors_per_block));
  }
}

template void find_rounding_bounds(const MatrixView<const float>&, std::span<const VectorRange>,
                                   std::span<const double>, std::span<RoundingBound>, int);
template void find_rounding_bounds(const MatrixView<const double>&, std::span<const VectorRange>,
                                   std::span<const double>, std::span<RoundingBound>, int);
template void find_rounding_bounds(const MatrixView<const DoubleDouble>&, std::span<const VectorRange>,
                                   std::span<const double>, std::span<RoundingBound>, int);
template void find_rounding_bounds(const EmbeddedView<float>&, std::span<const VectorRange>,
                                   std::span<const double>, std::span<RoundingBound>, int);
template void find_rounding_bounds(const EmbeddedView<double>&, std::span<const VectorRange>,
                                   std::span<const double>, std::span<RoundingBound>, int);

}  // namespace kintsugi::core
