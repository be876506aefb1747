#include "engines/cuda/gemm/int8_gemm.hpp"

#include <algorithm>
#include <array>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

// Sets the terms and moduli of the kernel's parameters, group after group.
void set_terms(const Schedule& schedule, Int8Params& params) {
  std::uint16_t count = 0;
  for (int g = 0; g < schedule.groups; ++g) {
    params.first_term[g] = count;
    for (const Term& term : schedule.terms) {
      if (term.group == g) params.terms[count++] = {term.a, term.b};
    }
    params.moduli[g] = static_cast<std::uint16_t>(schedule.group_moduli[static_cast<std::size_t>(g)]);
  }
  params.first_term[schedule.groups] = count;
}

// Tensor map of slices whose rows a copy permutes (PermutedRows, LastPermutedRows). Its dimensions are k, e,
// groups of the adjacent rows of a thread, p, and the slices. p has `pairs` values. A box has the rows of one
// copy. Slices have memory for whole groups of 16 rows.
TensorMap permuted_tensor_map(const Slices& slices, int rows_of_thread, std::int64_t groups, int pairs,
                              int copied_pairs) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t length = extent(slices.vector_stride());
  const std::array<std::uint64_t, 5> lengths{length, 2, extent(groups), extent(pairs), extent(slices.count)};
  const std::array<std::uint64_t, 4> strides{length, extent(rows_of_thread) * length, 2 * length,
                                             extent(slices.slice_stride())};
  return byte_tensor_map(
      slices.data, lengths, strides,
      {Int8Tile::block_k, 2, PermutedRows::threads, static_cast<std::uint32_t>(copied_pairs), 1});
}

TensorMap permuted_tensor_map(const Slices& slices) {
  using Rows = PermutedRows;
  static_assert(Slices::vector_multiple % Rows::rows_of_thread == 0);
  return permuted_tensor_map(slices, Rows::rows_of_thread,
                             divide_up(slices.vectors, std::int64_t{Rows::rows_of_thread}),
                             Rows::pairs_of_thread, Rows::copied_pairs);
}

// The same for the last rows of narrow tiles. These begin at any multiple of 16, which need not be one of 12:
// then p begins at a value up to 5. Narrow tiles have no rows that do not exist.
TensorMap last_rows_tensor_map(const Slices& slices) {
  using Rows = LastPermutedRows;
  const std::int64_t groups = slices.padded_vectors() / Rows::rows_of_thread;
  return permuted_tensor_map(slices, Rows::rows_of_thread, groups, 2 * Rows::pairs_of_thread - 1,
                             Rows::copied_pairs);
}

// Kernel for sums of at most `products` products of int8.
const KernelName& kernel_for(const Int8Kernels& kernels, SumType type, std::int64_t products) {
  if (type != SumType::residue) return kernels.integers;
  return are_int25_sums(products) ? kernels.short_residues : kernels.residues;
}

// Launches a kernel with an Int8MmaTile.
void launch_mma(const Queue& queue, const KernelName& kernel, const Slices& a, const Slices& b,
                const Int8Params& int8) {
  using Tile = Int8MmaTile;
  const auto operand = [](const Slices& slices) {  // elements are bytes
    return MmaOperand{slices.data, slices.vector_stride(), slices.slice_stride(), 0};
  };
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  Int8MmaParams params{.int8 = int8, .a = operand(a), .b = operand(b)};
  TileSchedule& schedule = params.int8.schedule;
  schedule =
      make_whole_tile_schedule(count(int8.rows, Tile::rows), count(int8.columns, Tile::columns),
                               int8.schedule.items, count(a.vector_stride(), Tile::block_k), sm_count());
  params.a_vectors = static_cast<std::int32_t>(a.padded_vectors());
  const std::int64_t stages = (max_shared_bytes_of_block() - mma_static_bytes) / Tile::stage_bytes;
  params.stages = stages < Tile::max_stages ? Tile::min_stages : Tile::max_stages;
  launch(kernel, {schedule.clusters}, Tile::threads, std::int64_t{params.stages} * Tile::stage_bytes, queue,
         params);
}

// Launches the kernel. `params` has the condition, or the numbers of moduli, on which it depends.
void launch_int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                      const Accumulators& sums, Int8Params params) {
  const Int8Kernels& kernels = *current_family().int8;
  const bool reduces = sums.type == SumType::residue;
  params.schedule = int8_tile_schedule(int8_shape(schedule, a, sums), clusters_of_device());
  params.sums = sums.data;
  params.rows = sums.rows;
  params.columns = sums.columns;
  set_terms(schedule, params);
  const std::int64_t products = params.max_products(a.vector_stride());
  if (kernels.has_mma_tiles) return launch_mma(queue, kernel_for(kernels, sums.type, products), a, b, params);
  params.full_tiles = reduces ? full_int8_tiles(sums.rows, products, schedule.groups) : params.schedule.rows;
  const TensorMap rows = reduces ? permuted_tensor_map(a) : tensor_map(a, 1, Int8Tile::copied_rows);
  launch(kernel_for(kernels, sums.type, products),
         {gemm_cluster_size * std::int64_t{params.schedule.clusters}, 1, 1, gemm_cluster_size},
         Int8Tile::threads, Int8Tile::shared_bytes, queue, rows,
         params.full_tiles < params.schedule.rows ? last_rows_tensor_map(a) : rows,
         tensor_map(b, 1, Int8Tile::block_columns), params);
}

}  // namespace

bool has_int8_gemm(const Schedule& schedule, FormatId format) {
  const Family& family = current_family();
  return format == FormatId::int8 && schedule.terms.size() <= max_groups && family.int8 != nullptr &&
         family.has_gemm_kernels();
}

Int8Shape int8_shape(const Schedule& schedule, const Slices& a, const Accumulators& sums) {
  return {sums.rows, sums.columns, a.vector_stride(), schedule.groups,
          static_cast<int>(schedule.terms.size())};
}

void int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
               const Accumulators& sums, const DeviceCondition& condition) {
  Int8Params params;
  params.condition = condition;
  launch_int8_gemm(queue, schedule, a, b, sums, params);
}

void multiply_selected(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums, const SelectedModuli& selected) {
  Int8Params params;
  params.selected = selected;
  launch_int8_gemm(queue, schedule, a, b, sums, params);
}

namespace {

// Expected time in microseconds of the products of residues modulo all moduli.
double residue_products_time(const DeviceShape& shape, const Costs& costs) {
  const int groups = shape.schedule.groups;
  return int8_microseconds({shape.m, shape.n, shape.k, groups, groups}, costs.int8_tile,
                           clusters_of_device());
}

}  // namespace

DeviceTimes expected_residue_times(const DeviceShape& shape, const Costs& costs) {
  const ResidueCosts& residue_costs = costs.residues[static_cast<std::size_t>(shape.type)];
  const double split_elements = (shape.prepared_a ? 0 : product_of(shape.m, shape.k)) +
                                (shape.prepared_b ? 0 : product_of(shape.k, shape.n));
  const int slices = shape.schedule.groups;
  const double of_result = residue_costs.result_slice * slices + (shape.adds_to_c ? residue_costs.update : 0);
  const double emulated = residue_costs.launches + residue_products_time(shape, costs) +
                          residue_costs.operand_slice * slices * split_elements +
                          of_result * product_of(shape.m, shape.n);
  const NativeShape native{shape.type,  shape.m,          shape.n,        shape.k,
                           shape.items, shape.is_aligned, shape.adds_to_c};
  return {static_cast<double>(shape.items) * emulated, vendor_time(native, costs)};
}

}  // namespace kintsugi::core::cuda
