#include "split/maxima.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/status.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

constexpr int most_slices = 3;
constexpr double largest_int8 = 127;

using VectorWeights = std::array<float, most_slices>;

// Returns the integer nearest to residual / weight, ties to even.
double nearest_multiple(double residual, float weight) {
  constexpr double rounder = 0x1.8p52;
  return weight == 0 ? 0 : (residual / static_cast<double>(weight) + rounder) - rounder;
}

// Takes the first `count` slices of x from it, calls store(s, integer) for each, and returns the residual.
template <class Store>
double take_slices(double x, const VectorWeights& weights, int count, const Store& store) {
  for (int s = 0; s < count; ++s) {
    const float weight = weights[static_cast<std::size_t>(s)];
    const double integer = nearest_multiple(x, weight);
    store(s, integer);
    x -= static_cast<double>(weight) * integer;
  }
  return x;
}

template <class View>
VectorWeights weights_of(const View& operand, const SplitRule& rule, int scale, std::int64_t v) {
  if (rule.slices > most_slices)
    fail(Status::internal, "{} slices are scaled by maxima, at most {} can be", rule.slices, most_slices);
  VectorWeights weights{};
  for (int s = 0; s < rule.slices; ++s) {
    double largest = 0;
    for (std::int64_t p = 0; p < operand.columns; ++p) {
      const double x = times_power_of_two(finite_or_zero(operand(v, p)), scale);
      largest = std::max(largest, std::fabs(take_slices(x, weights, s, [](int, double) {})));
    }
    weights[static_cast<std::size_t>(s)] = static_cast<float>(largest / largest_int8);
  }
  return weights;
}

}  // namespace

template <class View>
void find_slice_weights(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                        int threads, float* weights) {
  for_each_vector_block(operand.rows, threads, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t v = first; v < last; ++v) {
      const VectorWeights found = weights_of(operand, rule, ranges[v].scale, v);
      std::copy_n(found.begin(), rule.slices, weights + v * rule.slices);
    }
  });
}

template <class View>
void split_block_by_maxima(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                           const Slices& slices, std::int64_t first, std::int64_t last) {
  for (std::int64_t v = first; v < last; ++v) {
    const int scale = ranges[v].scale;
    const VectorWeights weights = weights_of(operand, rule, scale, v);
    for (std::int64_t p = 0; p < operand.columns; ++p) {
      const double x = times_power_of_two(finite_or_zero(operand(v, p)), scale);
      take_slices(x, weights, rule.slices, [&](int s, double integer) {
        slices.vector<std::int8_t>(s, v)[p] = static_cast<std::int8_t>(integer);
      });
    }
  }
}

#define INSTANTIATE(View)                                                                            \
  template void find_slice_weights(const View&, const SplitRule&, std::span<const VectorRange>, int, \
                                   float*);                                                          \
  template void split_block_by_maxima(const View&, const SplitRule&, std::span<const VectorRange>,   \
                                      const Slices&, std::int64_t, std::int64_t);
INSTANTIATE(MatrixView<const float>)
INSTANTIATE(EmbeddedView<float>)
#undef INSTANTIATE

}  // namespace kintsugi::core
