#include "engines/cuda/arch/costs.hpp"

#include <array>
#include <string_view>

#include "base/text/format_text.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/gemm/direct_params.hpp"

namespace kintsugi::core::cuda {

namespace {

using enum CostScaling;

constexpr std::array type_names{"f32", "f64", "c32", "c64"};  // indexed by ElementType

// List of costs that grows field by field. Times are `clock_time` if they depend on the SMs' clock alone.
class Fields {
 public:
  void add(std::string name, double& value, CostScaling scaling) {
    fields_.push_back({std::move(name), &value, scaling});
  }
  void add_tile(std::string_view name, TileTimes& tile) {
    add(fmt::format("{}.block", name), tile.block, clock_time);
    add(fmt::format("{}.tile", name), tile.tile, clock_time);
  }
  std::vector<CostField> take() { return std::move(fields_); }

 private:
  std::vector<CostField> fields_;
};

void add_multi_term(Fields& fields, MultiTermCosts& costs, std::span<const MultiTermKernels> structures) {
  fields.add("multi_term.launch", costs.launch, none);
  fields.add("multi_term.two_sums_factor", costs.two_sums_factor, none);
  fields.add("multi_term.four_sums_factor", costs.four_sums_factor, none);
  fields.add("multi_term.four_sums_factor_alone", costs.four_sums_factor_alone, none);
  fields.add("multi_term.small_tile", costs.small_tile, clock_time);
  fields.add("multi_term.segment_sums", costs.segment_sums, none);
  fields.add("multi_term.memory_rate", costs.memory_rate, memory_rate);
  fields.add("multi_term.cache_rate", costs.cache_rate, compute_rate);
  fields.add("multi_term.narrow_cache_rate", costs.narrow_cache_rate, compute_rate);
  std::span<const SmallTile> small_tiles;
  for (std::size_t s = 0; s < structures.size(); ++s) {
    for (std::size_t i = 0; i < structures[s].mma_tiles.size(); ++i)
      fields.add_tile(fmt::format("multi_term.{}.{}x{}", structures[s].name, structures[s].mma_tiles[i].rows,
                                  structures[s].mma_tiles[i].columns),
                      costs.tiles[s][i]);
    for (std::size_t i = 0; i < structures[s].tiles.size(); ++i)
      fields.add_tile(fmt::format("multi_term.{}.{}x{}", structures[s].name, term_tile_rows,
                                  structures[s].tiles[i].columns),
                      costs.tiles[s][i]);
    if (!structures[s].small_tiles.empty()) small_tiles = structures[s].small_tiles;
  }
  for (std::size_t i = 0; i < small_tiles.size(); ++i) {
    const std::string name = fmt::format("multi_term.{}x{}", small_tile_rows, small_tiles[i].columns);
    fields.add(name + ".alone", costs.small_tiles[i].alone, clock_time);
    fields.add(name + ".shared", costs.small_tiles[i].shared, clock_time);
  }
}

void add_call(Fields& fields, CallCosts& costs) {
  fields.add("call.copy_rate", costs.copy_rate, memory_rate);
  fields.add("call.split_launch", costs.split_launch, none);
  fields.add("call.split_launch_alone", costs.split_launch_alone, none);
  fields.add("call.split_rate", costs.split_rate, none);
  fields.add("call.split_launch_long", costs.split_launch_long, none);
  fields.add("call.split_rate_long", costs.split_rate_long, none);
  fields.add("call.native_launch", costs.native_launch, none);
  fields.add("call.native_ends", costs.native_ends, none);
  fields.add("call.native_rate", costs.native_rate, compute_rate);
  fields.add("call.native_rate_short", costs.native_rate_short, compute_rate);
  fields.add("call.native_read_short", costs.native_read_short, memory_rate);
  fields.add("call.native_read_shortest", costs.native_read_shortest, memory_rate);
  fields.add("call.selection", costs.selection, none);
  fields.add("call.prepared_selection", costs.prepared_selection, none);
  fields.add("call.result_time", costs.result_time, none);
  fields.add("call.throttling", costs.throttling, none);
  fields.add("call.throttled_product", costs.throttled_product, none);
}

void add_weighted_tiles(Fields& fields, Costs& costs) {
  fields.add("weighted_tiles.launch", costs.weighted_tiles.launch, none);
  fields.add("weighted_tiles.failing_rate", costs.weighted_tiles.failing_rate, compute_rate);
  fields.add("weighted_tiles.product", costs.weighted_tiles.product, clock_time);
  fields.add("weighted_tiles.conversion_32", costs.weighted_tiles.conversion_32, clock_time);
  fields.add("weighted_tiles.conversion_128", costs.weighted_tiles.conversion_128, clock_time);
  fields.add("weighted_tiles.tile", costs.weighted_tiles.tile, clock_time);
  fields.add("packing.launch", costs.packing.launch, none);
  fields.add("packing.rate", costs.packing.rate, none);
}

void add_direct(Fields& fields, DirectCosts& costs) {
  fields.add("direct.launch", costs.launch, none);
  for (std::size_t i = 0; i < direct_tiles.size(); ++i)
    fields.add_tile(fmt::format("direct.{}x{}", direct_tiles[i].rows, direct_tiles[i].columns),
                    costs.tiles[i]);
  fields.add("direct.meeting", costs.meeting, none);
  fields.add("direct.unaligned", costs.unaligned, none);
}

// Adds the times of the tiles of an element type's native kernels.
template <class Tile>
void add_native_tiles(Fields& fields, std::size_t type, std::span<const Tile> tiles, Costs& costs) {
  for (std::size_t i = 0; i < tiles.size(); ++i)
    fields.add(
        fmt::format("native.{}.tile_index.{}x{}", type_names[type], tiles[i].rows(), tiles[i].columns()),
        costs.native[type].tile_index[i], clock_time);
}

void add_native(Fields& fields, Costs& costs, const Family& family) {
  fields.add("native_call.own_launch", costs.native_call.own_launch, none);
  fields.add("native_call.tile_ends", costs.native_call.tile_ends, none);
  fields.add("native_call.vendor_launch", costs.native_call.vendor_launch, none);
  for (std::size_t i = 0; i < type_names.size(); ++i) {
    if (family.dmma[i] != nullptr) {
      add_native_tiles(fields, i, family.dmma[i]->tiles, costs);
    } else {
      add_native_tiles(fields, i, family.simt_tiles[i], costs);
    }
    fields.add(fmt::format("native.{}.vendor_rate", type_names[i]), costs.native[i].vendor_rate,
               compute_rate);
    fields.add(fmt::format("native.{}.unaligned_rate", type_names[i]), costs.native[i].unaligned_rate, none);
    fields.add(fmt::format("native.{}.vendor_result", type_names[i]), costs.native[i].vendor_result,
               memory_time);
    fields.add(fmt::format("native.{}.vendor_update", type_names[i]), costs.native[i].vendor_update,
               memory_time);
  }
  // FP32 has no such costs, because it has the multi-term kernels.
  for (std::size_t i = 1; i < type_names.size(); ++i) {
    fields.add(fmt::format("residues.{}.launches", type_names[i]), costs.residues[i].launches, none);
    fields.add(fmt::format("residues.{}.operand_slice", type_names[i]), costs.residues[i].operand_slice,
               memory_time);
    fields.add(fmt::format("residues.{}.result_slice", type_names[i]), costs.residues[i].result_slice,
               memory_time);
    fields.add(fmt::format("residues.{}.update", type_names[i]), costs.residues[i].update, memory_time);
  }
}

}  // namespace

const char* name_of(ElementType type) { return type_names[static_cast<std::size_t>(type)]; }

std::vector<CostField> cost_fields(Costs& costs, const Family& family) {
  static_assert(static_cast<int>(ElementType::f32) == 0 && static_cast<int>(ElementType::c64) == 3);
  Fields fields;
  add_multi_term(fields, costs.multi_term, family.multi_term);
  add_call(fields, costs.call);
  fields.add_tile("int8_tile", costs.int8_tile);
  add_weighted_tiles(fields, costs);
  if (family.direct != nullptr) add_direct(fields, costs.direct);
  add_native(fields, costs, family);
  return fields.take();
}

}  // namespace kintsugi::core::cuda
