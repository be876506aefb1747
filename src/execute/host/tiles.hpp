// Sums of programs with an exponent per tile, and the half-precision program for tiles that fail Eq. 9 of
// MixPert (docs/schemes/mixpert.md).
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "execute/blocks.hpp"
#include "execute/host/operand.hpp"
#include "execute/report.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/schedule.hpp"
#include "split/slices.hpp"
#include "split/tiles.hpp"

namespace kintsugi::core {

// One operand of a block of C: its elements, and the ranges and slices of its vectors.
template <class View>
struct TiledOperand {
  View elements;
  std::span<const VectorRange> ranges;
  Slices slices;
};

// Writes group 1 of `sums`: the half-precision products of all pairs of a tile of A and a tile of B of which
// at least one tile fails. Returns false and writes nothing if no tile fails. View: OperandView of float or
// std::complex<float>.
template <class View>
bool add_failing_tiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums,
                       int threads);

// Returns the argument of add_failing_tiles() for consecutive rows of op(A) or columns of op(B).
template <class T>
TiledOperand<OperandView<T>> tiled_operand(const SideOf<T>& side, const Slices& slices, std::int64_t first,
                                           std::int64_t count) {
  const std::int64_t parts = side.view.rows / elements_of(side.view).rows;
  return {side.view.vectors(parts * first, parts * count),
          std::span<const VectorRange>(side.ranges).subspan(parts * first, parts * count), slices};
}

// Finishes the sums of a program with exponents per tile. Counts the tiles that this block is the first to
// use. Computes the products of failing tiles as a second group of sums. Returns the sums to recombine: both
// groups, or only the first group if no tile fails.
template <class T>
Accumulators finish_tiled_sums(const ResultBlock& block, const SideOf<T>& a, const Slices& slices_a,
                               const SideOf<T>& b, const Slices& slices_b, const Accumulators& sums,
                               int threads, Report& report) {
  if (block.column == 0) report.tiles_a += count_tiles(slices_a);
  if (block.row == 0) report.tiles_b += count_tiles(slices_b);
  Accumulators to_recombine = sums;
  if constexpr (std::is_same_v<RealOf<T>, float>) {
    const bool fails =
        add_failing_tiles(tiled_operand(a, slices_a, block.row, block.rows),
                          tiled_operand(b, slices_b, block.column, block.columns), sums, threads);
    if (!fails) to_recombine.groups = 1;
  }
  return to_recombine;
}

}  // namespace kintsugi::core
