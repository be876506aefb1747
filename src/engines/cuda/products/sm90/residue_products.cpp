#include "engines/cuda/products/sm90/residue_products.hpp"

#include <algorithm>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/products/sm90/clusters.hpp"

namespace kintsugi::core::cuda {

bool has_residue_products(const Schedule& schedule, FormatId format) {
  const auto is_of_one_modulus = [&](const Term& term) {
    return term.a == term.b && term.a == term.group && schedule.group_moduli[term.group] != 0;
  };
  return format == FormatId::int8 && schedule.terms.size() == static_cast<std::size_t>(schedule.groups) &&
         std::ranges::all_of(schedule.terms, is_of_one_modulus);
}

void multiply_residues(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums) {
  multiply_residues(
      queue, schedule, a, b, sums,
      choose_residue_tile(sums.rows, sums.columns, schedule.groups, a.vector_stride(), clusters_of_device()));
}

void multiply_residues(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums, const ResidueChoice& choice) {
  static const std::array kernels{KernelName{"residues_sm90a", "residue_products_256"},
                                  KernelName{"residues_sm90a", "residue_products_128"}};
  static_assert(kernels.size() == residue_tiles.size());
  const ResidueTile& tile = residue_tiles[choice.tile];
  ResidueProducts products;
  products.walk = choice.walk;
  products.residues = sums.group<std::uint8_t>(0);
  products.rows = sums.rows;
  products.columns = sums.columns;
  std::ranges::copy(std::span(schedule.group_moduli).first(static_cast<std::size_t>(schedule.groups)),
                    products.moduli);
  launch(kernels[choice.tile], {blocks_of_cluster * std::int64_t{choice.walk.clusters}}, ResidueTile::threads,
         tile.shared_bytes(), queue, tensor_map(a, 1, tile.copied_rows()),
         tensor_map(b, 1, tile.copied_columns()), products);
}

}  // namespace kintsugi::core::cuda
