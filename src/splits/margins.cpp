#include "splits/margins.hpp"

#include <algorithm>
#include <array>

#include "arith/residue.hpp"
#include "base/floating_environment.hpp"
#include "base/vectorised.hpp"
#include "base/workers.hpp"
#include "splits/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Elements of one vector that are looked at together.
constexpr int lanes = 64;

KINTSUGI_VECTORISED void add_margins(const double* x, TwoFactors factors, double* inexact,
                                     double* magnitudes) {
  for (int e = 0; e < lanes; ++e) {
    const double scaled = x[e] * factors.first * factors.second;
    const double integer = any_rounded_to_integer(scaled);
    // Far below 1/2 the scaled element itself may have become zero.
    const int differs = (integer != scaled) | ((integer == 0) & (x[e] != 0));
    inexact[e] += differs;
    magnitudes[e] += integer < 0 ? -integer : integer;
  }
}

struct Lanes {
  alignas(64) double inexact[lanes] = {};
  alignas(64) double magnitudes[lanes] = {};
};

RoundingMargin total(const Lanes& sums) {
  RoundingMargin margin;
  for (int e = 0; e < lanes; ++e) {
    margin.inexact += sums.inexact[e];
    margin.magnitudes += sums.magnitudes[e];
  }
  return margin;
}

template <class View>
void find_block_margins(const View& operand, std::span<const VectorRange> ranges,
                        std::span<const double> inner, std::span<RoundingMargin> margins, std::int64_t first,
                        std::int64_t last) {
  std::array<Lanes, vectors_per_block> sums{};
  for (std::int64_t begin = 0; begin < operand.columns; begin += lanes) {
    const std::int64_t end = std::min(operand.columns, begin + lanes);
    for (std::int64_t v = first; v < last; ++v) {
      alignas(64) double elements[lanes] = {};
      load_elements(operand, inner, v, begin, end, elements);
      Lanes& own = sums[static_cast<std::size_t>(v - first)];
      add_margins(elements, two_factors(ranges[v].scale), own.inexact, own.magnitudes);
    }
  }
  for (std::int64_t v = first; v < last; ++v) margins[v] = total(sums[static_cast<std::size_t>(v - first)]);
}

}  // namespace

template <class View>
void find_margins(const View& operand, std::span<const VectorRange> ranges, std::span<const double> inner,
                  std::span<RoundingMargin> margins, int threads) {
  const std::int64_t blocks = divide_up(operand.rows, vectors_per_block);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * vectors_per_block;
    find_block_margins(operand, ranges, inner, margins, first,
                       std::min(operand.rows, first + vectors_per_block));
  }
}

template void find_margins(const MatrixView<const float>&, std::span<const VectorRange>,
                           std::span<const double>, std::span<RoundingMargin>, int);
template void find_margins(const MatrixView<const double>&, std::span<const VectorRange>,
                           std::span<const double>, std::span<RoundingMargin>, int);
template void find_margins(const EmbeddedView<float>&, std::span<const VectorRange>, std::span<const double>,
                           std::span<RoundingMargin>, int);
template void find_margins(const EmbeddedView<double>&, std::span<const VectorRange>, std::span<const double>,
                           std::span<RoundingMargin>, int);

}  // namespace kintsugi::core
