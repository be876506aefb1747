// Products of slices with exponents per tile, element by element. The reference engine runs this definition;
// other engines run it if they have no kernel.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "arith/tile_arithmetic.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// One element of C, as schedule/schedule.hpp defines it for TileSums.
class TileElement {
 public:
  explicit TileElement(const Multiplication& task) : task_(task), schedule_(*task.schedule) {}

  float sum(std::int64_t i, std::int64_t j) const {
    float outside = 0;
    for (std::int64_t index = 0; index < task_.a.tiles_of_vector(); ++index) {
      const TileExponent& a = task_.a.tile(i, index);
      const TileExponent& b = task_.b.tile(j, index);
      if (a.exponent == TileExponent::none || b.exponent == TileExponent::none) continue;
      // With `pair_exponent` both tiles get the higher exponent: integers of the lower tile are shifted
      // right.
      const int shift_a = schedule_.tiles.pair_exponent ? std::max(b.exponent - a.exponent, 0) : 0;
      const int shift_b = schedule_.tiles.pair_exponent ? std::max(a.exponent - b.exponent, 0) : 0;
      if (std::max(shift_a, shift_b) > 31) continue;  // all bits of one operand are shifted out
      const float weight = tile_weight(a.difference + shift_a) * tile_weight(b.difference + shift_b);
      outside =
          std::fma(tile_product(i, j, index * schedule_.tiles.depth, shift_a, shift_b), weight, outside);
    }
    return outside;
  }

 private:
  // Segment s of an element whose integer is shifted right by `right_shift` bits and keeps its sign.
  static std::int32_t shifted(const Slices& slices, std::int64_t v, std::int64_t p, int s, int right_shift) {
    std::int32_t integer = 0;
    for (int t = 0; t < slices.count; ++t)
      integer = integer * (1 << segment_bits) + slices.vector<std::int8_t>(t, v)[p];
    const auto magnitude = static_cast<std::uint32_t>(integer < 0 ? -integer : integer) >> right_shift;
    return tile_segment(magnitude, integer < 0, slices.count, s);
  }

  // Sum of one term's products over a tile's inner indices.
  std::int32_t term_sum(const Term& term, std::int64_t i, std::int64_t j, std::int64_t begin,
                        std::int64_t length, int shift_a, int shift_b) const {
    std::int32_t sum = 0;
    if (shift_a == 0 && shift_b == 0) {
      const std::int8_t* a = task_.a.vector<std::int8_t>(term.a, i) + begin;
      const std::int8_t* b = task_.b.vector<std::int8_t>(term.b, j) + begin;
      for (std::int64_t p = 0; p < length; ++p) sum += a[p] * b[p];
      return sum;
    }
    for (std::int64_t p = begin; p < begin + length; ++p)
      sum += shifted(task_.a, i, p, term.a, shift_a) * shifted(task_.b, j, p, term.b, shift_b);
    return sum;
  }

  // Value of the pair of tiles that begin at inner index `begin`, in the unit of tile_value().
  float tile_product(std::int64_t i, std::int64_t j, std::int64_t begin, int shift_a, int shift_b) const {
    const std::int64_t length = std::min<std::int64_t>(schedule_.tiles.depth, task_.a.k - begin);
    std::array<std::int32_t, 4> sums{};
    for (const Term& term : schedule_.terms)
      sums[term.group] += term_sum(term, i, j, begin, length, shift_a, shift_b);
    return tile_value(sums[0], sums[1], sums[2], sums[3]);
  }

  const Multiplication& task_;
  const Schedule& schedule_;
};

// Computes the sums of all elements, as group 0.
inline void multiply_tiles_by_elements(const Multiplication& task) {
  const TileElement element(task);
#pragma omp parallel for num_threads(workers_for(task.sums.columns, task.threads)) schedule(static)
  for (std::int64_t j = 0; j < task.sums.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < task.sums.rows; ++i)
      task.sums.group<float>(0)[i + j * task.sums.rows] = element.sum(i, j);
  }
}

}  // namespace kintsugi::core
