// Unsigned integers of a fixed number of 64-bit limbs, for exact sums and their rounding.
#pragma once

#include <array>
#include <cstdint>

#include "arith/host_device.hpp"
#include "base/bits.hpp"

namespace kintsugi::core {

template <int Limbs>
struct WideInteger {
  __extension__ using TwoLimbs = unsigned __int128;
  static constexpr int bits = 64 * Limbs;

  std::array<std::uint64_t, Limbs> limb{};  // the least significant first

  // Adds factor * x to the lowest `used` limbs. The sum must fit into them.
  KINTSUGI_HOST_DEVICE constexpr void add_multiple(const WideInteger& x, std::uint64_t factor,
                                                   int used = Limbs) {
    std::uint64_t carry = 0;
    for (int l = 0; l < used; ++l) {
      const TwoLimbs sum = static_cast<TwoLimbs>(x.limb[l]) * factor + limb[l] + carry;
      limb[l] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
  }

  // Subtracts x, which must not exceed this integer.
  KINTSUGI_HOST_DEVICE constexpr void subtract(const WideInteger& x) {
    std::uint64_t borrow = 0;
    for (int l = 0; l < Limbs; ++l) {
      const TwoLimbs difference = static_cast<TwoLimbs>(limb[l]) - x.limb[l] - borrow;
      limb[l] = static_cast<std::uint64_t>(difference);
      borrow = static_cast<std::uint64_t>(difference >> 64) & 1U;
    }
  }

  KINTSUGI_HOST_DEVICE constexpr bool less_than(const WideInteger& x) const {
    for (int l = Limbs - 1; l >= 0; --l) {
      if (limb[l] != x.limb[l]) return limb[l] < x.limb[l];
    }
    return false;
  }

  // Position of the leading 1 bit plus one; 0 if the integer is zero.
  KINTSUGI_HOST_DEVICE constexpr int length() const {
    for (int l = Limbs - 1; l >= 0; --l) {
      if (limb[l] != 0) return 64 * l + 64 - leading_zeros(limb[l]);
    }
    return 0;
  }

  // Returns 64 bits, the lowest of them at `position`. Bits outside the integer are zero.
  KINTSUGI_HOST_DEVICE constexpr std::uint64_t bits_from(int position) const {
    const int first = position >> 6;
    const int offset = position & 63;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    for (int l = 0; l < Limbs; ++l) {  // constant limb indices keep the limbs of a kernel in registers
      low = l == first ? limb[l] : low;
      high = l == first + 1 ? limb[l] : high;
    }
    return offset == 0 ? low : low >> offset | high << (64 - offset);
  }

  KINTSUGI_HOST_DEVICE constexpr bool any_below(int position) const {
    std::uint64_t found = 0;
    for (int l = 0; l < Limbs; ++l) {
      const int count = position - 64 * l;
      if (count >= 64) {
        found |= limb[l];
      } else if (count > 0) {
        found |= limb[l] & ((std::uint64_t{1} << count) - 1);
      }
    }
    return found != 0;
  }

  // floor(x * 2^shift); x may have another width. The result must fit into this width.
  template <int OtherLimbs>
  KINTSUGI_HOST_DEVICE static constexpr WideInteger shifted(const WideInteger<OtherLimbs>& x, int shift) {
    WideInteger result;
    for (int l = 0; l < Limbs; ++l) result.limb[l] = x.bits_from(64 * l - shift);
    return result;
  }
};

}  // namespace kintsugi::core
