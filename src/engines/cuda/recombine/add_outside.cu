// Addition of a k-block's sums to the sums outside the matrix unit.
#include "engines/cuda/recombine/arguments.hpp"

#include "arith/residue/remainder.hpp"

namespace kintsugi::core::cuda {

namespace {

// Calls store(e, sums) for the thread's four elements: once for all of them if all four exist, else one by
// one.
template <class Store>
__device__ void for_each_sum(const std::int32_t* inside, std::int64_t elements, const Store& store) {
  const std::int64_t first = 4 * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (first + 4 <= elements) {
    const int4 sums = *reinterpret_cast<const int4*>(inside + first);
    store(first, std::array{sums.x, sums.y, sums.z, sums.w});
  } else {
    for (std::int64_t e = first; e < elements; ++e) store(e, std::array{inside[e]});
  }
}

// Elements that one access reads or writes.
template <class T, std::size_t count>
struct alignas(count * sizeof(T)) ElementPack {
  T element[count];
};

// Sets outside[e] = sum(outside[e], inside[e]). For a product's first k-block outside[e] counts as 0 and is
// not read.
template <class T, class Sum>
__device__ void add_outside(const std::int32_t* inside, std::int64_t elements, bool is_first_k_block,
                            T* outside, const Sum& sum) {
  for_each_sum(inside, elements, [&]<std::size_t count>(std::int64_t e, const std::array<int, count>& sums) {
    using Elements = ElementPack<T, count>;
    Elements& target = *reinterpret_cast<Elements*>(outside + e);
    Elements result{};
    if (!is_first_k_block) result = target;
    for (std::size_t s = 0; s < count; ++s) result.element[s] = sum(result.element[s], sums[s]);
    target = result;
  });
}

// Adds sums that are integers in FP32 or FP64. A thread adds four elements, which are blockDim.x apart.
template <class T>
__device__ void add_floating_outside(const T* inside, std::int64_t elements, bool is_first_k_block,
                                     std::int64_t* outside) {
  const std::int64_t begin = 4 * std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t e = begin + i * static_cast<std::int64_t>(blockDim.x);
    if (e < elements) outside[e] = (is_first_k_block ? 0 : outside[e]) + static_cast<std::int64_t>(inside[e]);
  }
}

}  // namespace

extern "C" __global__ void add_floats_as_integers(const float* inside, std::int64_t elements,
                                                  bool is_first_k_block, std::int64_t* outside) {
  add_floating_outside(inside, elements, is_first_k_block, outside);
}

extern "C" __global__ void add_doubles_as_integers(const double* inside, std::int64_t elements,
                                                   bool is_first_k_block, std::int64_t* outside) {
  add_floating_outside(inside, elements, is_first_k_block, outside);
}

extern "C" __global__ void add_as_integers(const std::int32_t* inside, std::int64_t elements,
                                           bool is_first_k_block, std::int64_t* outside) {
  add_outside(inside, elements, is_first_k_block, outside,
              [](std::int64_t old, std::int32_t sum) { return old + sum; });
}

extern "C" __global__ void add_as_residues(const std::int32_t* inside, std::int64_t elements,
                                           bool is_first_k_block, std::uint8_t* outside,
                                           std::uint32_t modulus, std::uint32_t reciprocal) {
  add_outside(inside, elements, is_first_k_block, outside, [=](std::uint8_t old, std::int32_t sum) {
    // Both summands are less than the modulus.
    const std::uint32_t total = old + residue_of_sum(sum, modulus, reciprocal);
    return static_cast<std::uint8_t>(total - (total >= modulus ? modulus : 0));
  });
}

}  // namespace kintsugi::core::cuda
