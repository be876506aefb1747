// Integers for tests of the Chinese remainder theorem.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "arith/exact/exact_rounding.hpp"

namespace kintsugi::test {

// Integers of any length below a quarter of the moduli's product.
class DrawnIntegers {
 public:
  DrawnIntegers(std::mt19937_64& random, int bits, std::int64_t count)
      : integers_(static_cast<std::size_t>(count)) {
    for (Integer& integer : integers_) {
      for (auto& limb : integer.magnitude.limb) limb = random() % 8 == 0 ? 0 : random();
      const int shorter = random() % 2 == 0 ? 0 : static_cast<int>(random() % 400);
      const int drop = 384 - bits + shorter;
      integer.magnitude = core::WideInteger<6>::shifted(integer.magnitude, -drop);
      integer.negative = random() % 2 == 0;
    }
  }

  std::uint8_t residue(std::int64_t element, int modulus) const {
    const Integer& integer = integers_[static_cast<std::size_t>(element)];
    std::uint64_t remainder = 0;
    for (int w = 11; w >= 0; --w)
      remainder = (remainder << 32 | (integer.magnitude.limb[w / 2] >> (w % 2 * 32) & 0xffffffffU)) %
                  static_cast<unsigned>(modulus);
    return static_cast<std::uint8_t>(
        integer.negative && remainder != 0 ? static_cast<unsigned>(modulus) - remainder : remainder);
  }

 private:
  using Integer = core::ExactNumber<6>;

  std::vector<Integer> integers_;
};

}  // namespace kintsugi::test
