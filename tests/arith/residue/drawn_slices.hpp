// Slices of complex elements with given residues.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "arith/residue/complex_residue.hpp"

namespace kintsugi::core {

// Appends random slices modulo modulus t of the basis, whose sum with the part's weights is `residue`.
inline void append_slices(std::mt19937_64& random, const ComplexBasis& basis, int part, int t,
                          std::uint32_t residue, std::vector<std::uint32_t>& slices) {
  const auto modulus = static_cast<std::uint32_t>(basis.modulus(t));
  const auto weight = basis.part_weights(part, t);
  const int count = basis.has_root(t) ? 2 : 3;
  std::array<std::uint32_t, 3> slice{};
  for (int s = 1; s < count; ++s) slice[s] = static_cast<std::uint32_t>(random() % modulus);
  while ((slice[0] * weight[0] + slice[1] * weight[1] + slice[2] * weight[2]) % modulus != residue)
    ++slice[0];
  slices.insert(slices.end(), slice.begin(), slice.begin() + count);
}

}  // namespace kintsugi::core
