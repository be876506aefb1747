#include "execute/host/steps.hpp"

#include <algorithm>

#include "arith/residue/residue_scale.hpp"
#include "base/threads.hpp"
#include "schemes/magnitudes.hpp"
#include "split/norms.hpp"

namespace kintsugi::core {

namespace {

// Sets the scales of a side by norms. If the side has prepared slices, their scales are used.
template <class T>
void scale_side_by_norms(SideOf<T>& side, int threads) {
  if (!side.norms.empty()) {
    for (std::size_t v = 0; v < side.ranges.size(); ++v) {
      if (side.ranges[v].flags == 0)
        side.ranges[v].scale = norm_scale(side.ranges[v], *side.rule, side.norms[v].bits);
    }
    return;
  }
  if (side.prepared == nullptr || side.prepared->slices.data == nullptr || side.prepared->rule != *side.rule)
    return scale_by_norms(side.view, *side.rule, side.ranges, threads);
  for (std::size_t v = 0; v < side.ranges.size(); ++v) side.ranges[v].scale = side.prepared->ranges[v].scale;
}

// Updates `rows` and `columns`, the bits of the largest sum in every row and every column of a block of C, by
// the given sums.
void raise_bits(const Accumulators& sums, std::span<std::int32_t> rows, std::span<std::int32_t> columns,
                int threads) {
  const auto element = [&](std::int64_t i, std::int64_t j) {
    return static_cast<std::uint64_t>(sums.group<std::int64_t>(0)[i + j * sums.rows]);
  };
#pragma omp parallel for num_threads(workers_for(sums.columns, threads)) schedule(static)
  for (std::int64_t j = 0; j < sums.columns; ++j) {
    std::uint64_t largest = 0;
    for (std::int64_t i = 0; i < sums.rows; ++i) largest = std::max(largest, element(i, j));
    columns[j] = std::max(columns[j], bits_of_sum(largest));
  }
  constexpr std::int64_t chunk = 64;  // contiguous elements of a column that a thread reads at a time
  const std::int64_t chunks = divide_up(sums.rows, chunk);
#pragma omp parallel for num_threads(workers_for(chunks, threads)) schedule(static)
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk;
    const std::int64_t last = std::min(first + chunk, sums.rows);
    std::array<std::uint64_t, chunk> largest{};
    for (std::int64_t j = 0; j < sums.columns; ++j) {
      for (std::int64_t i = first; i < last; ++i)
        largest[i - first] = std::max(largest[i - first], element(i, j));
    }
    for (std::int64_t i = first; i < last; ++i) rows[i] = std::max(rows[i], bits_of_sum(largest[i - first]));
  }
}

// Finds U of residue_scale.hpp: the bits of the largest sum of magnitudes in every row and every column of C.
template <class T>
void find_bits_of_products(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                           std::span<std::int32_t> rows, std::span<std::int32_t> columns,
                           Workspace& workspace) {
  set_program(magnitude_above_program, a, b);
  const BlockMemory memory = take_block(plan, magnitude_above_program, blocking, a, b, workspace);
  constexpr std::int64_t parts = parts_of<T>;
  SplitVectors split_columns;
  Slices slices_b;
  for_each_block(blocking, plan.problem.m, plan.problem.n, [&](const ResultBlock& block) {
    if (split_columns.replace(block.column))
      slices_b = split_vectors(b, {block.column, block.columns}, plan.threads);
    const Slices slices_a = split_vectors(a, {block.row, block.rows}, plan.threads);
    const Accumulators sums =
        multiply_slices(plan, magnitude_above_program, Accumulator::int32, slices_a, slices_b, memory);
    raise_bits(sums, rows.subspan(block.row, block.rows),
               columns.subspan(parts * block.column, parts * block.columns), plan.threads);
  });
}

void scale_by_bits(std::span<VectorRange> ranges, const SplitRule& rule, std::span<const std::int32_t> bits) {
  for (std::size_t v = 0; v < ranges.size(); ++v) {
    if ((ranges[v].flags & VectorRange::all_zero) == 0)
      ranges[v].scale = product_scale(ranges[v], rule, bits[v]);
  }
}

template <class T>
void scale_by_products(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                       SideOf<T>& b, Workspace& workspace) {
  const auto [rows, columns] = lay_out_product_bits(plan, workspace);
  std::ranges::fill(rows, 0);
  std::ranges::fill(columns, 0);
  find_bits_of_products(plan, blocking, a, b, rows, columns, workspace);
  if constexpr (is_complex<T>) {  // The two vectors of a complex column get the same scale.
    for (std::size_t v = 0; v < columns.size(); v += 2) {
      columns[v] = std::max(columns[v], columns[v + 1]);
      columns[v + 1] = columns[v];
    }
  }
  set_program(program, a, b);
  scale_by_bits(a.ranges, program.split_a, rows);
  scale_by_bits(b.ranges, program.split_b, columns);
}

}  // namespace

template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace) {
  switch (program.split_a.scales) {
    case ScaleRule::exponent: return;
    case ScaleRule::norm: scale_side_by_norms(a, plan.threads); return scale_side_by_norms(b, plan.threads);
    case ScaleRule::product: return scale_by_products(plan, program, blocking, a, b, workspace);
  }
}

#define INSTANTIATE(T)                                                                                   \
  template void set_residue_scales(const Plan&, const Program&, const Blocking&, SideOf<T>&, SideOf<T>&, \
                                   Workspace);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
