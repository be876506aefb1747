// Pseudo-random numbers that are the same everywhere. No std:: distribution is used, since its values depend
// on the C++ library.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace kintsugi::measure {

// splitmix64 (S. Vigna, prng.di.unimi.it): a bijection that mixes all bits.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// xoshiro256** (D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators").
class Random {
 public:
  // Streams of one seed are independent: (seed, stream) is mixed into the whole state.
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t mixed = mix_bits(mix_bits(seed) ^ stream);
    for (std::uint64_t& word : state_) word = mixed = mix_bits(mixed);
  }

  [[gnu::always_inline]] constexpr std::uint64_t bits() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Returns a multiple of 2^-53 in [0, 1).
  constexpr double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  // Return numbers in [-1, 1] and [0, 1], rounded from 63 bits: small values also have all their significand
  // bits.
  constexpr double symmetric() { return static_cast<double>(static_cast<std::int64_t>(bits())) * 0x1p-63; }
  constexpr double closed_unit() { return static_cast<double>(bits() >> 1) * 0x1p-63; }

  // Returns an integer of [first, last], each equally likely within 2^-32 if there are fewer than 2^32.
  constexpr std::int64_t integer(std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::uint64_t>(last - first) + 1;
    return first + static_cast<std::int64_t>(count == 0 ? bits() : bits() % count);
  }

  constexpr bool flip() { return (bits() >> 63) != 0; }

  // Returns a standard normal number (Box and Muller; the second value is not kept, so that each call
  // advances the state equally).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  static constexpr std::uint64_t rotate(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

  std::uint64_t state_[4] = {};
};

}  // namespace kintsugi::measure
