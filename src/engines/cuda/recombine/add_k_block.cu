// Addition of a k-block's sums to the sums outside the matrix unit.
#include "arith/residue/remainder.hpp"
#include "engines/cuda/recombine/arguments.hpp"

namespace kintsugi::core::cuda {

namespace {

// Elements that one access reads or writes.
template <class T, std::size_t count>
struct alignas(std::min<std::size_t>(16, count * sizeof(T))) ElementPack {
  T element[count];
};

// Sets outside[e] = sum(outside[e], inside[e]) for `count` elements from e on.
template <std::size_t count, class Inside, class Outside, class Sum>
__device__ void add_elements(const KBlockSums& sums, std::int64_t e, const Sum& sum) {
  const auto inside =
      *reinterpret_cast<const ElementPack<Inside, count>*>(static_cast<const Inside*>(sums.inside) + e);
  auto& outside = *reinterpret_cast<ElementPack<Outside, count>*>(static_cast<Outside*>(sums.outside) + e);
  ElementPack<Outside, count> result{};
  if (!sums.is_first_k_block) result = outside;
#pragma unroll
  for (std::size_t s = 0; s < count; ++s) result.element[s] = sum(result.element[s], inside.element[s]);
  outside = result;
}

// Adds the thread's elements: all of them at once if they exist, else one by one.
template <class Inside, class Outside, class Sum>
__device__ void add(const KBlockSums& sums, const Sum& sum) {
  const std::int64_t first = k_block_elements * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (first + k_block_elements <= sums.elements) {
    add_elements<k_block_elements, Inside, Outside>(sums, first, sum);
  } else {
    for (std::int64_t e = first; e < sums.elements; ++e) add_elements<1, Inside, Outside>(sums, e, sum);
  }
}

template <class Inside>
__device__ void add_as_integers(const KBlockSums& sums) {
  add<Inside, std::int64_t>(
      sums, [](std::int64_t old, Inside sum) { return old + static_cast<std::int64_t>(sum); });
}

}  // namespace

extern "C" __global__ void add_k_block(const __grid_constant__ KBlockSums sums) {
  if (sums.modulus != 0) {
    return add<std::int32_t, std::uint8_t>(sums, [&](std::uint8_t old, std::int32_t sum) {
      // Both summands are less than the modulus.
      const std::uint32_t total = old + residue_of_sum(sum, sums.modulus, sums.reciprocal);
      return static_cast<std::uint8_t>(total - (total >= sums.modulus ? sums.modulus : 0));
    });
  }
  switch (sums.inside_type) {
    case KBlockSums::Inside::int32: return add_as_integers<std::int32_t>(sums);
    case KBlockSums::Inside::fp32: return add_as_integers<float>(sums);
    case KBlockSums::Inside::fp64: return add_as_integers<double>(sums);
  }
}

}  // namespace kintsugi::core::cuda
