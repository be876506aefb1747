// Parameters of one launch for FP32 products of different shapes (direct_groups.hpp).
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/direct_params.hpp"

namespace kintsugi::core::cuda {

// One product: what a launch of its own would get. Tensor maps of the tiles' rows, then of their columns.
struct alignas(128) DirectProduct {
  TensorMap maps[2];
  DirectParams params;
};

// Products of equal shape: tiles of the launch from `first_tile` on, `tiles` for each product.
struct DirectGroup {
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;
  std::int32_t first_product = 0;
};

// In memory: all products, and their groups.
struct DirectGroupTable {
  DirectProduct* products = nullptr;
  DirectGroup* groups = nullptr;
  std::int32_t group_count = 0;
  std::int32_t tiles = 0;  // of all products
};

// Groups whose products a launch of prepare_direct_products writes to the table. `product` has the operands
// and C of the whole group; its tensor maps begin at any address.
struct DirectPreparation {
  static constexpr int max_groups = 4;

  DirectGroupTable table;
  std::int32_t first_group = 0;
  std::int32_t items[max_groups] = {};
  DirectGroup groups[max_groups];
  DirectProduct products[max_groups];
};
static_assert(sizeof(DirectPreparation) <= 4096);
inline constexpr int preparing_threads = 128;

}  // namespace kintsugi::core::cuda
