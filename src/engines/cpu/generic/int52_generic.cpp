// Kernel for any machine: plain C++ with the 128-bit product of two 64-bit registers. Operands are not
// packed.
#include <algorithm>

#include "engines/cpu/int52_kernels.hpp"

namespace kintsugi::core {

namespace {

__extension__ using Product = __int128;

// Inner indices added at once. 128 vectors of this length take 256 KiB and are read from the L2 cache.
constexpr std::int64_t k_block = 256;

Int52Sum dot(const std::int64_t* a, const std::int64_t* b, std::int64_t length) {
  Product sum = 0;  // holds 2^25 products, more than k_block
  for (std::int64_t p = 0; p < length; ++p) sum += Product{a[p]} * b[p];
  return static_cast<Int52Sum>(sum);
}

void add_product(const Int52Block& block, std::byte*, const Int52Sums& sums) {
  for (std::int64_t p = 0; p < block.length; p += k_block) {
    const std::int64_t step_length = std::min(k_block, block.length - p);
    for (std::int64_t j = 0; j < block.columns; ++j) {
      for (std::int64_t i = 0; i < block.rows; ++i) {
        Int52Sum& sum = sums.data[i + j * sums.stride];
        const bool add = sums.adds || p > 0;
        sum = (add ? sum : 0) +
              dot(block.a + i * block.stride + p, block.b + j * block.stride + p, step_length);
      }
    }
  }
}

}  // namespace

const Int52Kernels int52_generic{
    .name = "generic", .relative_rate = 0.02, .packed_bytes = 0, .add_product = add_product};

}  // namespace kintsugi::core
