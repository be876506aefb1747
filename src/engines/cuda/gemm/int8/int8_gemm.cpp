#include "engines/cuda/gemm/int8/int8_gemm.hpp"

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
  int8_gemm(queue, schedule, a, b, sums, condition,
            choose_int8_tile(current_architecture().int8->tiles, current_costs().int8_tiles,
                             int8_shape(schedule, a, sums), clusters_of_device()));
}

void int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
               const Accumulators& sums, const DeviceCondition& condition, const Int8TileVariant& choice) {
  const Int8Kernels& kernels = *current_architecture().int8;
  const Int8Tile& tile = kernels.tiles[choice.tile];
  Int8Params params;
  params.schedule = choice.schedule;
  params.condition = condition;
  params.sums = sums.data;
  params.rows = sums.rows;
  params.columns = sums.columns;
  set_terms(schedule, params);
  launch((sums.type == SumType::residue ? kernels.residues : kernels.integers)[choice.tile],
         {gemm_cluster_size * std::int64_t{choice.schedule.clusters}, 1, 1, gemm_cluster_size},
         Int8Tile::threads, tile.shared_bytes(), queue, tensor_map(a, 1, tile.copied_rows()),
         tensor_map(b, 1, tile.copied_columns()), params);
}

DeviceTimes expected_residue_times(const DeviceShape& shape, const Costs& costs) {
  const Architecture& architecture = current_architecture();
  const auto type = static_cast<std::size_t>(shape.type);
  const ResidueCosts& residue_costs = costs.residues[type];
  const auto product_of = [](std::int64_t x, std::int64_t y) {
    return static_cast<double>(x) * static_cast<double>(y);
  };
  const double elements_of_c = product_of(shape.m, shape.n);
  const double elements = (shape.prepared_a ? 0 : product_of(shape.m, shape.k)) +
                          (shape.prepared_b ? 0 : product_of(shape.k, shape.n)) + elements_of_c;
  const int groups = shape.schedule.groups;
  const double product_time =
      choose_int8_tile(architecture.int8->tiles, costs.int8_tiles,
                       {shape.m, shape.n, shape.k, groups, groups}, clusters_of_device())
          .microseconds;
  const bool is_complex = shape.type == ElementType::c32 || shape.type == ElementType::c64;
  const double operations = (is_complex ? 8 : 2) * elements_of_c * static_cast<double>(shape.k);
  const auto items = static_cast<double>(shape.items);
  return {items * (residue_costs.launches + product_time + residue_costs.element_slice * groups * elements),
          items * operations / vendor_rate(costs.native[type], shape.is_aligned)};
}

}  // namespace kintsugi::core::cuda
