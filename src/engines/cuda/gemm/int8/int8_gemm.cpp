#include "engines/cuda/gemm/int8/int8_gemm.hpp"

#include <array>

#include "arith/residue/strassen.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/native_times.hpp"

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

// Tensor map of slices whose rows a copy permutes (PermutedRows). Its dimensions are k, e, the 16 rows of a
// thread, p, and the slices; a box has the copied_rows rows of one copy. Slices have memory for whole groups
// of 16 rows.
TensorMap permuted_tensor_map(const Slices& slices) {
  using Rows = PermutedRows;
  static_assert(Slices::vector_multiple % Rows::rows_of_thread == 0);
  const auto length = static_cast<std::uint64_t>(slices.vector_stride());
  const auto groups_of_rows =
      static_cast<std::uint64_t>(divide_up(slices.vectors, std::int64_t{Rows::rows_of_thread}));
  const std::array<std::uint64_t, 5> lengths{length, 2, groups_of_rows, Rows::pairs_of_thread,
                                             static_cast<std::uint64_t>(slices.count)};
  const std::array<std::uint64_t, 4> strides{length, Rows::rows_of_thread * length, 2 * length,
                                             static_cast<std::uint64_t>(slices.slice_stride())};
  constexpr std::array<std::uint32_t, 5> box{Int8Tile::block_k, 2, Rows::threads, Rows::copied_pairs, 1};
  return byte_tensor_map(slices.data, lengths, strides, box);
}

// Kernel for sums of at most `products` products of int8.
const KernelName& kernel_for(const Int8Kernels& kernels, SumType type, std::int64_t products) {
  constexpr std::int64_t largest_product = 1 << 14;
  constexpr std::int64_t largest_int25 = (1 << 24) - 1;
  if (type != SumType::residue) return kernels.integers;
  return products * largest_product <= largest_int25 ? kernels.short_residues : kernels.residues;
}

}  // namespace

bool has_int8_gemm(const Schedule& schedule, FormatId format) {
  const Architecture& architecture = current_architecture();
  return format == FormatId::int8 && schedule.terms.size() <= max_groups && architecture.int8 != nullptr &&
         architecture.has_gemm_kernels();
}

Int8Shape int8_shape(const Schedule& schedule, const Slices& a, const Accumulators& sums) {
  return {sums.rows, sums.columns, a.vector_stride(), schedule.groups,
          static_cast<int>(schedule.terms.size())};
}

void int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
               const Accumulators& sums, const DeviceCondition& condition) {
  const Int8Kernels& kernels = *current_architecture().int8;
  const bool reduces = sums.type == SumType::residue;
  Int8Params params;
  params.schedule = int8_tile_schedule(int8_shape(schedule, a, sums), clusters_of_device());
  params.condition = condition;
  params.sums = sums.data;
  params.rows = sums.rows;
  params.columns = sums.columns;
  set_terms(schedule, params);
  launch(kernel_for(kernels, sums.type, params.max_products(a.vector_stride())),
         {gemm_cluster_size * std::int64_t{params.schedule.clusters}, 1, 1, gemm_cluster_size},
         Int8Tile::threads, Int8Tile::shared_bytes, queue,
         reduces ? permuted_tensor_map(a) : tensor_map(a, 1, Int8Tile::copied_rows),
         tensor_map(b, 1, Int8Tile::block_columns), params);
}

namespace {

double product_of(std::int64_t x, std::int64_t y) { return static_cast<double>(x) * static_cast<double>(y); }

// Expected time in microseconds of the products of residues modulo all moduli.
double residue_products_time(const DeviceShape& shape, const Costs& costs) {
  const int groups = shape.schedule.groups;
  const std::int32_t clusters = clusters_of_device();
  if (!shape.schedule.strassen)
    return int8_microseconds({shape.m, shape.n, shape.k, groups, groups}, costs.int8_tile, clusters);
  return int8_microseconds(
      {strassen_half(shape.m), strassen_half(shape.n), strassen_half(shape.k), groups, groups},
      costs.int8_tile, clusters);
}

// Expected time in microseconds of the bytes that a step of Strassen's algorithm reads and writes beyond
// those of other products: there are seven slices and sums of half the size where others have four
// quarters. Splits write slices, products write sums, and recombination reads them. They have 0.74 of the
// rate of a copy (docs/results/log/2026-11-27-strassen-on-residues.md).
double strassen_bytes_time(const DeviceShape& shape, int moduli, const Costs& costs) {
  constexpr double more_slices = 7.0 / 4 - 1;
  constexpr double rate = 0.74;
  const double elements =
      product_of(shape.m, shape.k) + product_of(shape.k, shape.n) + 2 * product_of(shape.m, shape.n);
  return more_slices * moduli * elements / (rate * costs.call.copy_rate);
}

}  // namespace

DeviceTimes expected_residue_times(const DeviceShape& shape, const Costs& costs) {
  const auto type = static_cast<std::size_t>(shape.type);
  const ResidueCosts& residue_costs = costs.residues[type];
  const double elements_of_c = product_of(shape.m, shape.n);
  const double elements = (shape.prepared_a ? 0 : product_of(shape.m, shape.k)) +
                          (shape.prepared_b ? 0 : product_of(shape.k, shape.n)) + elements_of_c;
  const bool strassen = shape.schedule.strassen;
  const int slices = shape.schedule.groups / (strassen ? strassen_products : 1);
  const double emulated = residue_costs.launches + residue_products_time(shape, costs) +
                          residue_costs.element_slice * slices * elements +
                          (strassen ? strassen_bytes_time(shape, slices, costs) : 0);
  const bool is_complex = shape.type == ElementType::c32 || shape.type == ElementType::c64;
  const double operations = (is_complex ? 8 : 2) * elements_of_c * static_cast<double>(shape.k);
  const auto items = static_cast<double>(shape.items);
  return {items * emulated, items * operations / vendor_rate(costs.native[type], shape.is_aligned)};
}

}  // namespace kintsugi::core::cuda
