// Weights with which tensor cores turn the digits of a quad's integers into sums that are congruent to the
// elements of the seven operands of one step of Strassen's algorithm (arith/residue/strassen.hpp). A quad are
// four elements, one of each quadrant, at the same indices.
#pragma once

#include <array>

#include "arith/residue/strassen.hpp"
#include "engines/cuda/split/integer_elements.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda::strassen {

// A product of fragments of mma.sync has eight columns, each a modulus of the same operand.
inline constexpr int moduli_of_product = 8;
inline constexpr int modulus_sets = strassen_moduli / moduli_of_product;

// Constants of a modulus for sums of up to four integers. tests/engines/cuda/strassen_weights_test.cpp
// shows for every modulus and sum that quotients are exact.
constexpr FloatModulus sum_modulus(const ByteModulus& weights) {
  return float_modulus(weights, 4 * max_sum_of_digits(weights.low, weights.high));
}

// Weights of the eight digits of one element in one column: a lane's fragment of the second factor.
struct alignas(8) DigitWeights {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

// Returns the bytes times a coefficient of -1, 0 or 1. No byte may be -128.
constexpr std::uint32_t times(std::uint32_t bytes, int coefficient) {
  std::uint32_t result = 0;
  for (int i = 0; i < 32; i += 8)
    result |= (static_cast<std::uint32_t>(coefficient * static_cast<std::int8_t>(bytes >> i)) & 0xffU) << i;
  return result;
}

// Coefficients of an element in the seven operands. Elements in order: that of the first vector in the first
// half of k, that of the same vector in the second half of k, then both of the second vector.
constexpr std::array<int, strassen_products> coefficients(bool right, int element) {
  const auto one_if = [&](int e) { return element == e ? 1 : 0; };
  return right ? right_operands(one_if(0), one_if(2), one_if(1), one_if(3))
               : left_operands(one_if(0), one_if(1), one_if(2), one_if(3));
}

// Lane 4 g + e has the weights of element e for modulus g of a set.
using SideWeights = DigitWeights[modulus_sets][strassen_products][32];
static_assert(sizeof(SideWeights) == strassen_weights_bytes);
struct alignas(16) OperandWeights {
  SideWeights weights[2];  // first of left operands, then of right ones
};
constexpr OperandWeights make_operand_weights() {
  OperandWeights result{};
  for (int side = 0; side < 2; ++side) {
    for (int lane = 0; lane < 32; ++lane) {
      const auto factors = coefficients(side == 1, lane % 4);
      for (int set = 0; set < modulus_sets; ++set) {
        const ByteModulus modulus = byte_modulus(moduli[set * moduli_of_product + lane / 4]);
        for (int q = 0; q < strassen_products; ++q)
          result.weights[side][set][q][lane] = {times(modulus.low, factors[q]),
                                                times(modulus.high, factors[q])};
      }
    }
  }
  return result;
}

// Constants of the two columns of a product that a lane gets, by lane % 4: moduli 2 e and 2 e + 1 of a set.
struct alignas(16) LaneModuli {
  std::int32_t start[4];  // both twice: the third factor of mma.sync, which is loaded into registers as it is
  float inverse[2];
  float rounding[2];
  std::int32_t modulus[2];
};
struct ModuliOfLanes {
  LaneModuli moduli[modulus_sets][4];
};
constexpr ModuliOfLanes make_moduli_of_lanes() {
  ModuliOfLanes result{};
  for (int t = 0; t < strassen_moduli; ++t) {
    const FloatModulus modulus = sum_modulus(byte_modulus(moduli[t]));
    LaneModuli& lane = result.moduli[t / moduli_of_product][t % moduli_of_product / 2];
    lane.modulus[t % 2] = modulus.modulus;
    lane.start[t % 2] = lane.start[t % 2 + 2] = modulus.start;
    lane.inverse[t % 2] = modulus.inverse;
    lane.rounding[t % 2] = modulus.rounding;
  }
  return result;
}

}  // namespace kintsugi::core::cuda::strassen
