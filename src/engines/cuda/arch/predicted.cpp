#include "engines/cuda/arch/predicted.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/le_gemm_model.hpp"
#include "engines/cuda/gemm/int8_tiles.hpp"

namespace kintsugi::core::cuda {

namespace {

// Geometric mean of ratios of measured to ideal times.
class MeanRatio {
 public:
  void add(double measured, double ideal) {
    sum_ += std::log(measured / ideal);
    ++count_;
  }
  double value() const { return count_ == 0 ? 1 : std::exp(sum_ / count_); }

 private:
  double sum_ = 0;
  int count_ = 0;
};

// ---------------------------------------------------------------- slices

constexpr double shared_bytes_per_clock = 128;  // of an SM: its 32 banks have 4 bytes each
constexpr int wgmma_rows = 64;

// Part of an SM's tile for which slices are read from shared memory at once: of a warp for mma.sync, of a
// warpgroup for wgmma.
struct ReadTile {
  int rows;
  int columns;
};

// Time of a k-block of an SM's tile if the matrix unit and shared memory were busy without a pause, whichever
// takes longer. LE-GEMM counts the operations (Eq. 14) and the bytes that are written (Eq. 13). Every term
// reads its slices once for each ReadTile.
double ideal_block_time(const Card& card, double rate, const le_gemm::Tile& tile, const ReadTile& at_once,
                        int slices, int terms) {
  constexpr double element = 2;  // bytes
  const double multiplications = le_gemm::operations(tile, terms) / 2;
  const auto elements = static_cast<double>(tile.rows * tile.columns);
  const double read = terms * element * static_cast<double>(tile.depth) *
                      (elements / at_once.columns + elements / at_once.rows);
  const double written = le_gemm::memory_bytes(tile, slices);
  return std::max(multiplications / card.per_sm(rate),
                  (read + written) / (shared_bytes_per_clock * card.traits.clock_mhz));
}

struct MultiTermModel {
  const Card& card;

  static int slices(const MultiTermKernels& kernels) {
    int most = 0;
    for (const Term& term : kernels.terms) most = std::max({most, term.a + 1, term.b + 1});
    return most;
  }
  double block(const MultiTermKernels& kernels, int rows, int columns, const ReadTile& at_once) const {
    const double rate = kernels.format == FormatId::bf16 ? card.rates.bf16 : card.rates.fp16;
    return ideal_block_time(card, rate, {rows, columns, term_block, term_threads}, at_once, slices(kernels),
                            static_cast<int>(kernels.terms.size()));
  }
  double wgmma_block(const MultiTermKernels& kernels, int rows, int columns) const {
    return block(kernels, rows, columns, {wgmma_rows, columns});
  }
  double tile_block(const MultiTermKernels& kernels, const MultiTermTile& tile) const {
    return wgmma_block(kernels, term_tile_rows / gemm_cluster_size, tile.columns);
  }
  double tile_block(const MultiTermKernels& kernels, const MmaTile& tile) const {
    return block(kernels, tile.rows, tile.columns, {tile.warp_rows, tile.warp_columns});
  }
  // Time outside the k-blocks: what the SIMT units do for every element of C.
  double tile_end(int elements) const { return elements / card.per_sm(card.rates.fp32); }
  double tile_end(const MultiTermTile& tile) const {
    return tile_end(term_tile_rows / gemm_cluster_size * tile.columns);
  }
  double tile_end(const MmaTile& tile) const { return tile_end(tile.sums()); }
};

// Measured shares of a structure, or of all structures of a device.
struct StructureRatios {
  MeanRatio block;
  MeanRatio end;
};

StructureRatios ratios_of(const Profile& reference, const Card& card, std::string_view structure) {
  const Family& family = family_of(reference.device.major, reference.device.minor);
  const auto has_name = [&](const MultiTermKernels& kernels) { return kernels.name == structure; };
  const bool is_measured = std::ranges::any_of(family.multi_term, has_name);
  const MultiTermModel model{card};
  StructureRatios ratios;
  for (std::size_t s = 0; s < family.multi_term.size(); ++s) {
    const MultiTermKernels& kernels = family.multi_term[s];
    if (is_measured && !has_name(kernels)) continue;
    for (std::size_t i = 0; i < kernels.tiles.size(); ++i) {
      const TileTimes& times = reference.costs.multi_term.tiles[s][i];
      ratios.block.add(times.block, model.tile_block(kernels, kernels.tiles[i]));
      ratios.end.add(times.tile, model.tile_end(kernels.tiles[i]));
    }
  }
  return ratios;
}

// The structure whose kernels have small tiles; all of them have the same ones.
const MultiTermKernels* with_small_tiles(const Family& family) {
  for (const MultiTermKernels& kernels : family.multi_term) {
    if (!kernels.small_tiles.empty()) return &kernels;
  }
  return nullptr;
}

// Small tiles that both families have reach the same share of the ideal rate; other ones reach the mean
// share. The model does not explain the shares: 0.55 to 0.7 for 128 columns, 0.8 to 1.1 for 64.
void predict_small_tiles(Costs& costs, const Card& card, const Profile& reference,
                         const Card& reference_card) {
  const MultiTermKernels* const measured =
      with_small_tiles(family_of(reference.device.major, reference.device.minor));
  const MultiTermKernels* const kernels = with_small_tiles(family_of(card.traits.major, card.traits.minor));
  if (measured == nullptr || kernels == nullptr) return;
  for (std::size_t i = 0; i < kernels->small_tiles.size(); ++i) {
    const auto columns = [&](const SmallTile& tile) { return tile.columns; };
    const bool is_measured = std::ranges::find(measured->small_tiles, kernels->small_tiles[i].columns,
                                               columns) != measured->small_tiles.end();
    MeanRatio alone;
    MeanRatio shared;
    for (std::size_t j = 0; j < measured->small_tiles.size(); ++j) {
      const int measured_columns = measured->small_tiles[j].columns;
      if (is_measured && measured_columns != kernels->small_tiles[i].columns) continue;
      const SmallTileTimes& times = reference.costs.multi_term.small_tiles[j];
      const double ideal =
          MultiTermModel{reference_card}.wgmma_block(*measured, small_tile_rows, measured_columns);
      alone.add(times.alone, ideal);
      shared.add(times.shared, ideal);
    }
    const double ideal =
        MultiTermModel{card}.wgmma_block(*kernels, small_tile_rows, kernels->small_tiles[i].columns);
    costs.multi_term.small_tiles[i] = {.alone = alone.value() * ideal, .shared = shared.value() * ideal};
  }
}

void predict_multi_term(Costs& costs, const Card& card, const Profile& reference,
                        const Card& reference_card) {
  const Family& family = family_of(card.traits.major, card.traits.minor);
  const MultiTermModel model{card};
  for (std::size_t s = 0; s < family.multi_term.size(); ++s) {
    const MultiTermKernels& kernels = family.multi_term[s];
    const StructureRatios ratios = ratios_of(reference, reference_card, kernels.name);
    const auto predict = [&](std::size_t i, const auto& tile) {
      costs.multi_term.tiles[s][i] = {.block = ratios.block.value() * model.tile_block(kernels, tile),
                                      .tile = ratios.end.value() * model.tile_end(tile)};
    };
    for (std::size_t i = 0; i < kernels.tiles.size(); ++i) predict(i, kernels.tiles[i]);
    for (std::size_t i = 0; i < kernels.mma_tiles.size(); ++i) predict(i, kernels.mma_tiles[i]);
  }
  predict_small_tiles(costs, card, reference, reference_card);
}

// Time of a k-block of the int8 GEMM kernels' tile, whose bytes are counted in int8_tiles.hpp.
double ideal_int8_block(const Card& card) {
  constexpr double multiplications = double{Int8Tile::rows} * Int8Tile::block_columns * Int8Tile::block_k;
  constexpr double busy_shared_memory = (85.0 + 53.0) / 128;  // time of shared memory / time of matrix unit
  return multiplications / card.per_sm(card.rates.int8) * std::max(1.0, busy_shared_memory);
}

// ---------------------------------------------------------------- native products

// Ideal time per inner index of as many tiles as an SM holds.
template <class Tile>
double ideal_index_time(const Tile& tile, double rate_of_sm) {
  return static_cast<double>(tile.rows()) * tile.columns() * tile.blocks_per_sm / rate_of_sm;
}

bool is_double(std::size_t type) {
  return type == static_cast<std::size_t>(ElementType::f64) ||
         type == static_cast<std::size_t>(ElementType::c64);
}

// Calls visit(index, ideal time) for the native tiles of a type.
void for_each_native_tile(const Card& card, std::size_t type,
                          const std::function<void(std::size_t, double)>& visit) {
  const Family& family = family_of(card.traits.major, card.traits.minor);
  if (family.dmma[type] != nullptr) {
    const auto& tiles = family.dmma[type]->tiles;
    for (std::size_t i = 0; i < tiles.size(); ++i)
      visit(i, ideal_index_time(tiles[i], card.per_sm(card.fastest_fp64())));
  } else {
    const auto& tiles = family.simt_tiles[type];
    const double rate = is_double(type) ? card.rates.fp64 : card.rates.fp32;
    for (std::size_t i = 0; i < tiles.size(); ++i) visit(i, ideal_index_time(tiles[i], card.per_sm(rate)));
  }
}

// Tiles that both devices have reach the same share of the published rate; other ones reach the mean share of
// the reference's tiles.
void predict_native(Costs& costs, const Card& card, const Profile& reference, const Card& reference_card) {
  const Family& family = family_of(card.traits.major, card.traits.minor);
  const Family& measured = family_of(reference.device.major, reference.device.minor);
  const double fp32_gain = card.rates.fp32 / reference_card.rates.fp32;
  for (std::size_t type = 0; type < costs.native.size(); ++type) {
    std::array<double, max_tiles> ratios{};
    MeanRatio mean;
    for_each_native_tile(reference_card, type, [&](std::size_t index, double ideal) {
      ratios[index] = reference.costs.native[type].tile_index[index] / ideal;
      mean.add(ratios[index], 1);
    });
    const bool has_same_tiles =
        family.dmma[type] == measured.dmma[type] &&
        (family.dmma[type] != nullptr || family.simt_tiles[type].data() == measured.simt_tiles[type].data());
    for_each_native_tile(card, type, [&](std::size_t index, double ideal) {
      costs.native[type].tile_index[index] = ideal * (has_same_tiles ? ratios[index] : mean.value());
    });
    const double gain = is_double(type) ? card.fastest_fp64() / reference_card.fastest_fp64() : fp32_gain;
    costs.native[type].vendor_rate = reference.costs.native[type].vendor_rate * gain;
  }
  costs.call.native_rate = reference.costs.call.native_rate * fp32_gain;
  costs.call.native_rate_short = reference.costs.call.native_rate_short * fp32_gain;
}

// Splits into residues and their recombination take FP64 instructions, of which some devices execute so few
// that they take longer than the bytes: for an element of an operand two multiplications by scales and the
// eight of nearest_digits(), for an element of C the five of fraction_of_digits() and the nine of
// rounded_product(). They are shared among the slices, of which FP64 has 15.
void limit_by_fp64_units(ResidueCosts& costs, double parts, double fp64_rate) {
  constexpr double operand_instructions = 10;
  constexpr double result_instructions = 14;
  constexpr double slices = 15;
  costs.operand_slice = std::max(costs.operand_slice, parts * operand_instructions / slices / fp64_rate);
  costs.result_slice = std::max(costs.result_slice, parts * result_instructions / slices / fp64_rate);
}

}  // namespace

Costs predicted_costs(const Card& card, const Profile& reference) {
  const Card reference_card = card_of(reference.device);
  // Costs that depend on clock, SMs or bandwidth alone, by the published numbers of both.
  Profile published = reference;
  published.device = reference_card.traits;
  Costs costs = scaled_costs(published, card.traits);
  predict_multi_term(costs, card, reference, reference_card);
  predict_native(costs, card, reference, reference_card);
  const double int8_ratio = ideal_int8_block(card) / ideal_int8_block(reference_card);
  costs.int8_tile.block = reference.costs.int8_tile.block * int8_ratio;
  costs.weighted_tiles.product = reference.costs.weighted_tiles.product * int8_ratio;
  for (const ElementType type : {ElementType::f64, ElementType::c32, ElementType::c64}) {
    const double parts = type == ElementType::f64 ? 1 : 2;
    limit_by_fp64_units(costs.residues[static_cast<std::size_t>(type)], parts, card.rates.fp64);
  }
  return costs;
}

}  // namespace kintsugi::core::cuda
