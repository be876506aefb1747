#include "tools/measure/element_selection.hpp"

#include <numeric>
#include <random>
#include <unordered_set>
#include <utility>

namespace kintsugi::measure {
namespace {

// Returns indices with the first and the last at positions 0 and 1 and the others in random order.
std::vector<std::int64_t> shuffled(std::int64_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (count > 2) std::swap(order[1], order[count - 1]);
  // std::shuffle is not used, since its order depends on the C++ library.
  for (std::int64_t i = 2; i < count; ++i) {
    const auto remaining = static_cast<std::uint64_t>(count - i);
    std::swap(order[i], order[i + static_cast<std::int64_t>(random() % remaining)]);
  }
  return order;
}

Selection select_all(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t tile_size = 16;
  Selection all{.rows = std::vector<std::int64_t>(static_cast<std::size_t>(m)),
                .columns = std::vector<std::int64_t>(static_cast<std::size_t>(n)),
                .tile_size = tile_size,
                .tiles = {},
                .elements = m * n};
  std::iota(all.rows.begin(), all.rows.end(), std::int64_t{0});
  std::iota(all.columns.begin(), all.columns.end(), std::int64_t{0});
  all.tiles.resize(static_cast<std::size_t>(core::divide_up(m, tile_size) * core::divide_up(n, tile_size)));
  std::iota(all.tiles.begin(), all.tiles.end(), std::int64_t{0});
  return all;
}

// Selects tiles of 4 x 4 until the wanted number of elements is reached; tile 0 contains the corners.
Selection select_sample(std::int64_t m, std::int64_t n, std::int64_t wanted, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Selection sample;
  sample.rows = shuffled(m, random);
  sample.columns = shuffled(n, random);
  sample.tile_size = 4;
  const auto tiles = static_cast<std::uint64_t>(core::divide_up(m, 4) * sample.tiles_across());
  std::unordered_set<std::int64_t> chosen;
  for (std::int64_t tile = 0; sample.elements < wanted; tile = static_cast<std::int64_t>(random() % tiles)) {
    if (!chosen.insert(tile).second) continue;
    sample.tiles.push_back(tile);
    sample.elements += sample.row_count(tile) * sample.column_count(tile);
  }
  return sample;
}

}  // namespace

Selection select_elements(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t work_limit,
                          std::int64_t max_elements, std::uint64_t seed) {
  const double elements = static_cast<double>(m) * static_cast<double>(n);
  const double work = elements * static_cast<double>(std::max<std::int64_t>(k, 1));
  if (work <= static_cast<double>(work_limit) || elements <= static_cast<double>(max_elements))
    return select_all(m, n);
  return select_sample(m, n, std::max<std::int64_t>(max_elements, 1), seed);
}

}  // namespace kintsugi::measure
