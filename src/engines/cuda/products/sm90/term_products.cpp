#include "engines/cuda/products/sm90/term_products.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/products/sm90/clusters.hpp"
#include "engines/cuda/products/sm90/term_structures.hpp"
#include "engines/cuda/products/sm90/term_tiles.hpp"

namespace kintsugi::core::cuda {

namespace {

// Partial sums, and behind them how many parts have been added.
constexpr std::size_t partial_bytes =
    std::size_t{most_clusters} * term_tile_rows * most_tile_columns * sizeof(float);
constexpr std::size_t counter_bytes = std::size_t{most_clusters} * counters_of_tile * sizeof(std::uint32_t);

// What there are kernels for.
struct TermKernels {
  std::span<const Term> terms;
  FormatId format;
  std::span<const TermTile> tiles;
  std::array<KernelName, 3> kernels;  // of the tiles
};

#define KINTSUGI_KERNEL(name) \
  KernelName { "terms_sm90a", name }
const std::array<TermKernels, 3> all_kernels{
    {{joined_terms.terms,
      FormatId::fp16,
      joined_tiles,
      {KINTSUGI_KERNEL("fp16_terms_192"), KINTSUGI_KERNEL("fp16_terms_128"),
       KINTSUGI_KERNEL("fp16_terms_64")}},
     {rescaled_terms.terms,
      FormatId::fp16,
      rescaled_tiles,
      {KINTSUGI_KERNEL("fp16_rescaled_terms_192"), KINTSUGI_KERNEL("fp16_rescaled_terms_128"),
       KINTSUGI_KERNEL("fp16_rescaled_terms_64")}},
     {six_terms.terms,
      FormatId::bf16,
      six_term_tiles,
      {KINTSUGI_KERNEL("bf16_six_terms_128"), KINTSUGI_KERNEL("bf16_six_terms_64"), KINTSUGI_KERNEL("")}}}};
#undef KINTSUGI_KERNEL

const TermKernels* find_kernels(const Schedule& schedule, FormatId format) {
  if (schedule.k_block != term_block || schedule.k_step != 0 || schedule.joint) return nullptr;
  for (const TermKernels& kernels : all_kernels) {
    if (kernels.format == format && std::ranges::equal(kernels.terms, schedule.terms)) return &kernels;
  }
  return nullptr;
}

}  // namespace

bool has_term_products(const Schedule& schedule, FormatId format, EntryType type) {
  return type == EntryType::f32 && find_kernels(schedule, format) != nullptr;
}

std::size_t term_scratch_bytes() { return aligned_size(partial_bytes) + aligned_size(counter_bytes); }

void multiply_terms(const Queue& queue, const DeviceFusedProduct& product, std::byte* scratch) {
  const Schedule& schedule = *product.schedule;
  const DeviceTile& tile = product.tile;
  const TermKernels& kernels = *find_kernels(schedule, product.a.format->id);
  const TermChoice choice = choose_tile(kernels.tiles, tile.rows, tile.columns, product.entries,
                                        product.a.vector_stride(), clusters_of_device());
  const TermTile& shape = kernels.tiles[choice.tile];
  TermProducts products;
  products.tile = tile;
  products.walk = choice.walk;
  products.shares_a = product.shares_a;
  products.shares_b = product.shares_b;
  products.partial_sums = reinterpret_cast<float*>(scratch);
  products.parts_added = reinterpret_cast<std::uint32_t*>(scratch + aligned_size(partial_bytes));
  products.rescale = std::ldexp(1.0F, schedule.rescale_exponent);
  if (products.walk.parts > 1) {
    check(driver().set_bytes_async(reinterpret_cast<Address>(products.parts_added), 0, counter_bytes,
                                   queue.stream),
          "cuMemsetD8Async");
  }
  launch(kernels.kernels[choice.tile], {blocks_of_cluster * std::int64_t{products.walk.clusters}},
         term_threads, shape.shared_bytes(), queue,
         tensor_map(product.a, product.shares_a ? 1 : product.entries, term_tile_rows / blocks_of_cluster),
         tensor_map(product.b, product.shares_b ? 1 : product.entries, shape.columns / blocks_of_cluster),
         products);
}

DeviceTimes expected_term_times(const DeviceShape& shape) {
  constexpr double bytes_of_copy = 4.26e6;  // per microsecond, read and written
  constexpr double native_products = 52e6;  // multiplications and additions, at best
  constexpr double launch = 2.5;            // a kernel that has nothing to do
  constexpr double split_rate = 0.65;       // of the copy
  constexpr double throttled = 1.35;  // the chip at its power limit, against tiles that were measured alone
  const auto product_of = [](std::int64_t x, std::int64_t y) {
    return static_cast<double>(x) * static_cast<double>(y);
  };
  const TermKernels& kernels = *find_kernels(shape.schedule, shape.format);
  const auto entries = static_cast<double>(shape.entries);
  const double operands = entries * (product_of(shape.m, shape.k) + product_of(shape.k, shape.n));
  const double result = entries * product_of(shape.m, shape.n);
  const TermChoice choice =
      choose_tile(kernels.tiles, shape.m, shape.n, shape.entries, shape.k, clusters_of_device());
  const double slices_bytes = 4.0 + 2.0 * shape.schedule.slices_a;
  const double split = 2 * launch + operands * slices_bytes / (split_rate * bytes_of_copy);
  const double others = 4 * launch;  // choice, a second rung's split and products, the plain product
  const double native = std::max(2 * result * static_cast<double>(shape.k) / native_products,
                                 4 * (operands + result) / bytes_of_copy);
  return {split + launch + throttled * choice.microseconds + others, launch + native};
}

}  // namespace kintsugi::core::cuda
