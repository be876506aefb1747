// Tests on the host the arithmetic of the splits for one step of Strassen's algorithm: the weights with which
// tensor cores combine digits, and the reduction of the sums.
#include <gtest/gtest.h>

#include "engines/cuda/split/strassen_weights.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core::cuda {
namespace {

__extension__ using Wide = __int128;

TEST(StrassenWeights, SumsOfFourIntegersHaveTheResiduesOfEverySum) {
  for (int t = 0; t < strassen_moduli; ++t) {
    const int m = moduli[static_cast<std::size_t>(t)];
    const ByteModulus weights = byte_modulus(m);
    const FloatModulus modulus = strassen::sum_modulus(weights);
    const int max_sum = 4 * max_sum_of_digits(weights.low, weights.high);
    int expected = min_residue(m) + (m - (max_sum + min_residue(m)) % m) % m;  // of -max_sum
    for (int sum = -max_sum; sum <= max_sum; ++sum) {
      const auto residue = static_cast<std::int8_t>(residue_by_float(modulus.start + sum, modulus));
      ASSERT_EQ(residue, expected) << sum << " modulo " << m;
      expected += expected == min_residue(m) + m - 1 ? 1 - m : 1;
    }
  }
}

// Residue of operand q modulo modulus t, from the digits of a quad's elements in the order of coefficients().
std::int32_t residue_of_operand(const std::int64_t (&quad)[4], bool right, int q, int t) {
  static const strassen::OperandWeights weights = strassen::make_operand_weights();
  static const strassen::ModuliOfLanes moduli_of_lanes = strassen::make_moduli_of_lanes();
  const int set = t / strassen::moduli_of_product;
  const int column = t % strassen::moduli_of_product;
  const strassen::LaneModuli& lane = moduli_of_lanes.moduli[set][column / 2];
  EXPECT_EQ(lane.start[column % 2], lane.start[column % 2 + 2]);
  std::int32_t sum = lane.start[column % 2];
  for (int element = 0; element < 4; ++element) {
    const ByteDigits digits = balanced_digits(quad[element]);
    const strassen::DigitWeights& w = weights.weights[right ? 1 : 0][set][q][4 * column + element];
    sum = add_byte_products(digits.high, w.high, add_byte_products(digits.low, w.low, sum));
  }
  const FloatModulus modulus{.modulus = lane.modulus[column % 2],
                             .inverse = lane.inverse[column % 2],
                             .rounding = lane.rounding[column % 2]};
  return static_cast<std::int8_t>(residue_by_float(sum, modulus));
}

TEST(StrassenWeights, GiveTheResiduesOfTheSevenOperands) {
  measure::Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::int64_t quad[4];
    for (std::int64_t& integer : quad) {
      const std::int64_t bound = std::int64_t{1} << random.integer(1, 62);
      integer = round % 10 == 0 ? bound : random.integer(0, bound);
      if (random.flip()) integer = -integer;
    }
    const auto left = left_operands<Wide>(quad[0], quad[1], quad[2], quad[3]);
    const auto right = right_operands<Wide>(quad[0], quad[2], quad[1], quad[3]);
    for (int q = 0; q < strassen_products; ++q) {
      for (int t = 0; t < strassen_moduli; ++t) {
        const int m = moduli[static_cast<std::size_t>(t)];
        for (const bool is_right : {false, true}) {
          const std::int32_t residue = residue_of_operand(quad, is_right, q, t);
          const Wide wanted = (is_right ? right : left)[static_cast<std::size_t>(q)];
          ASSERT_EQ(static_cast<int>((wanted - residue) % m), 0) << "operand " << q << ", modulo " << m;
          ASSERT_GE(residue, min_residue(m));
          ASSERT_LE(residue, min_residue(m) + m - 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kintsugi::core::cuda
