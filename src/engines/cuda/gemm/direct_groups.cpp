#include "engines/cuda/gemm/direct_groups.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/direct_group_params.hpp"
#include "engines/cuda/gemm/direct_launch.hpp"

namespace kintsugi::core::cuda {

namespace {

// Thread blocks have a tile to themselves, whose sums must fit into registers and shared memory.
constexpr std::int64_t max_group_k = direct_segment;

DirectVariant variant_of(std::int64_t k, bool swapped) {
  return {.tile = static_cast<std::int32_t>(direct_tiles.size()) - 1,
          .swapped = swapped,
          .leaves = static_cast<std::int32_t>(divide_up(k, direct_leaf))};
}
static_assert(direct_tiles.back().is_wide());

std::int64_t tiles_of(std::int64_t m, std::int64_t n, bool swapped) {
  return divide_up(swapped ? n : m, wide_rows) * divide_up(swapped ? m : n, wide_columns);
}

// k-blocks that all thread blocks compute together.
template <class Shapes, class ShapeOf>
std::int64_t work_of(const Shapes& groups, bool swapped, const ShapeOf& shape_of) {
  std::int64_t work = 0;
  for (const auto& group : groups) {
    const auto [m, n, k, items] = shape_of(group);
    work += items * tiles_of(m, n, swapped) * divide_up(k, direct_block);
  }
  return work;
}

struct Extents {
  std::int64_t m, n, k, items;
};
Extents extents_of(const DeviceShape& shape) { return {shape.m, shape.n, shape.k, shape.items}; }
Extents extents_of_group(const DeviceGroup& group) {
  return {group.tile.rows, group.tile.columns, group.tile.a.matrix.columns, group.items};
}

// Parameters of a group's products. Tensor maps get their addresses on the device, which alone knows them.
DirectLaunch launch_of_group(const DeviceGroup& group, bool swapped, const void* any_address) {
  const Extents extents = extents_of_group(group);
  DeviceTile tile = group.tile;
  for (DeviceSide* side : {&tile.a, &tile.b}) {
    side->matrix.data = any_address;
    side->matrix.pointers = false;
    side->matrix.batch_stride = 0;
  }
  const Schedule schedule{};
  const DeviceShape shape{.schedule = schedule,
                          .format = FormatId::bf16,
                          .type = ElementType::f32,
                          .m = extents.m,
                          .n = extents.n,
                          .k = extents.k,
                          .items = 1,
                          .prepared_a = false,
                          .prepared_b = false};
  DirectLaunch made = direct_launch(tile, variant_of(extents.k, swapped), shape);
  made.params.tile.a.matrix = group.tile.a.matrix;
  made.params.tile.b.matrix = group.tile.b.matrix;
  return made;
}

// Launches of the groups of one layout.
struct LayoutGroups {
  std::vector<const DeviceGroup*> groups;
  std::vector<DirectLaunch> launches;
};

void launch_layout(const Queue& queue, const LayoutGroups& of_layout, const KernelName& kernel,
                   DeviceReport* report, DirectGroupTable table) {
  DirectPreparation preparation;
  preparation.table = table;
  std::int64_t tiles = 0, products = 0, most_items = 0;
  int count = 0;
  const auto prepare = [&] {
    launch(*current_family().direct->prepare_groups, {.x = most_items, .y = count}, preparing_threads,
           no_shared_bytes, queue, preparation);
    preparation.first_group += count;
    count = 0, most_items = 0;
  };
  for (std::size_t g = 0; g < of_layout.groups.size(); ++g) {
    const DirectLaunch& made = of_layout.launches[g];
    const std::int64_t items = of_layout.groups[g]->items;
    const std::int64_t tiles_of_item = std::int64_t{made.params.row_tiles} * made.params.column_tiles;
    preparation.items[count] = static_cast<std::int32_t>(items);
    preparation.groups[count] = {.first_tile = static_cast<std::int32_t>(tiles),
                                 .tiles = static_cast<std::int32_t>(tiles_of_item),
                                 .first_product = static_cast<std::int32_t>(products)};
    DirectProduct& product = preparation.products[count];
    product = {.maps = {made.row_map.value_or(TensorMap{}), made.column_map.value_or(TensorMap{})},
               .params = made.params};
    product.params.report = report;
    tiles += items * tiles_of_item;
    products += items;
    most_items = std::max(most_items, items);
    if (++count == DirectPreparation::max_groups) prepare();
  }
  if (count > 0) prepare();
  table.tiles = static_cast<std::int32_t>(tiles);
  launch(kernel, {.x = std::min<std::int64_t>(tiles, sm_count())}, wide_threads, wide_shared_bytes, queue,
         table);
}

std::size_t product_bytes(std::int64_t products) {
  return aligned_size(static_cast<std::size_t>(products) * sizeof(DirectProduct));
}

}  // namespace

bool takes_direct_group(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t items) {
  const DirectKernels* kernels = current_family().direct;
  if (kernels == nullptr || kernels->groups.empty() || !current_family().has_gemm_kernels()) return false;
  // A launch has fewer tiles than this; products and tiles are counted by 32 bits.
  constexpr std::int64_t most = std::int64_t{1} << 24;
  return k <= max_group_k && items <= 65535 && m < most && n < most &&
         items * std::max(tiles_of(m, n, false), tiles_of(m, n, true)) < most;
}

std::optional<GroupTimes> expected_group_times(std::span<const DeviceShape> shapes) {
  if (profile_in_force() == nullptr || !(current_costs().direct.launch > 0)) return std::nullopt;
  const DirectCosts& direct = current_costs().direct;
  const TileTimes& times = direct.tiles.back();
  const bool swapped = work_of(shapes, true, extents_of) < work_of(shapes, false, extents_of);
  const auto preparations = static_cast<double>(divide_up(std::ssize(shapes), DirectPreparation::max_groups));
  GroupTimes result{.together = (1 + preparations) * direct.launch, .of_each = {}};
  double longest = 0;
  for (const DeviceShape& shape : shapes) {
    const double of_tile = times.tile + (shape.is_aligned ? 1 : direct.unaligned) * times.block *
                                            static_cast<double>(divide_up(shape.k, direct_block));
    const auto tiles = static_cast<double>(shape.items * tiles_of(shape.m, shape.n, swapped));
    result.of_each.push_back(of_tile * tiles / sm_count());
    result.together += result.of_each.back();
    longest = std::max(longest, of_tile);
  }
  // The last tiles end one by one: half of them are idle while the last one ends.
  result.together += longest / 2;
  return result;
}

std::size_t direct_groups_bytes(std::int64_t products, std::int64_t groups) {
  return product_bytes(products) + aligned_size(static_cast<std::size_t>(groups) * sizeof(DirectGroup));
}

void launch_direct_groups(const Queue& queue, std::span<const DeviceGroup> groups, DeviceReport* report,
                          std::byte* scratch) {
  const bool swapped = work_of(groups, true, extents_of_group) < work_of(groups, false, extents_of_group);
  std::vector<const DeviceGroup*> sorted;
  for (const DeviceGroup& group : groups) sorted.push_back(&group);
  // Tiles that take longest begin first.
  std::ranges::stable_sort(sorted, std::greater{},
                           [](const DeviceGroup* group) { return group->tile.a.matrix.columns; });
  std::array<LayoutGroups, 4> layouts;
  for (const DeviceGroup* group : sorted) {
    DirectLaunch made = launch_of_group(*group, swapped, scratch);
    LayoutGroups& of_layout = layouts[made.layout];
    of_layout.groups.push_back(group);
    of_layout.launches.push_back(std::move(made));
  }
  std::int64_t all_products = 0;
  for (const DeviceGroup& group : groups) all_products += group.items;
  DirectGroupTable table{.products = reinterpret_cast<DirectProduct*>(scratch),
                         .groups = reinterpret_cast<DirectGroup*>(scratch + product_bytes(all_products))};
  for (std::size_t layout = 0; layout < layouts.size(); ++layout) {
    const LayoutGroups& of_layout = layouts[layout];
    if (of_layout.groups.empty()) continue;
    table.group_count = static_cast<std::int32_t>(of_layout.groups.size());
    launch_layout(queue, of_layout, current_family().direct->groups[swapped ? 1 : 0][layout], report, table);
    table.groups += table.group_count;
    for (const DeviceGroup* group : of_layout.groups) table.products += group->items;
  }
}

}  // namespace kintsugi::core::cuda
