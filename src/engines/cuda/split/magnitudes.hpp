// Largest and smallest magnitude of a vector, as bits: they give its range, at a fraction of the cost of
// updating a range by every element.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "arith/host_device.hpp"
#include "arith/range.hpp"

namespace kintsugi::core::cuda {

template <class T>
struct Magnitudes {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Bits without_sign = ~Bits{0} >> 1;
  static constexpr Bits infinity = sizeof(T) == 4 ? Bits{0x7f800000} : static_cast<Bits>(0x7ff0000000000000);

  Bits largest = 0;         // largest finite magnitude
  Bits below = ~Bits{0};    // smallest non-zero magnitude, less one
  std::uint32_t flags = 0;  // flags of special values

  KINTSUGI_HOST_DEVICE static constexpr Bits greater(Bits a, Bits b) { return a > b ? a : b; }
  KINTSUGI_HOST_DEVICE static constexpr Bits lesser(Bits a, Bits b) { return a < b ? a : b; }

  KINTSUGI_HOST_DEVICE constexpr void add(T x) {
    const Bits magnitude = std::bit_cast<Bits>(x) & without_sign;
    if (magnitude >= infinity) {
      VectorRange range;
      extend(range, x);
      flags |= range.flags & ~static_cast<std::uint32_t>(VectorRange::all_zero);
      return;
    }
    largest = greater(largest, magnitude);
    below = lesser(below, magnitude - 1);
  }

  // Adds the elements; returns true if all are finite.
  template <int count>
  KINTSUGI_HOST_DEVICE constexpr bool add(const T (&x)[count]) {
    Bits top = largest;
    Bits bottom = below;
    for (int i = 0; i < count; ++i) {
      const Bits magnitude = std::bit_cast<Bits>(x[i]) & without_sign;
      top = greater(top, magnitude);
      bottom = lesser(bottom, magnitude - 1);
    }
    if (top < infinity) {
      largest = top;
      below = bottom;
      return true;
    }
    for (int i = 0; i < count; ++i) add(x[i]);
    return false;
  }

  // Adds x[i] to magnitudes[i], for elements of adjacent vectors; returns true if all are finite.
  template <int count>
  KINTSUGI_HOST_DEVICE static constexpr bool add_each(Magnitudes (&magnitudes)[count], const T (&x)[count]) {
    Bits bits[count] = {};
    Bits top = 0;
    for (int i = 0; i < count; ++i) {
      bits[i] = std::bit_cast<Bits>(x[i]) & without_sign;
      top = greater(top, bits[i]);
    }
    if (top >= infinity) {
      for (int i = 0; i < count; ++i) magnitudes[i].add(x[i]);
      return false;
    }
    for (int i = 0; i < count; ++i) {
      magnitudes[i].largest = greater(magnitudes[i].largest, bits[i]);
      magnitudes[i].below = lesser(magnitudes[i].below, bits[i] - 1);
    }
    return true;
  }

  KINTSUGI_HOST_DEVICE constexpr void add(const Magnitudes& other) {
    largest = greater(largest, other.largest);
    below = lesser(below, other.below);
    flags |= other.flags;
  }

  // Range of the vector. Exponents, raised ones too, grow with magnitudes, so the largest and the smallest
  // element give it.
  KINTSUGI_HOST_DEVICE constexpr VectorRange range() const {
    VectorRange result;
    if (largest != 0) {
      extend(result, std::bit_cast<T>(largest));
      extend(result, std::bit_cast<T>(static_cast<Bits>(below + 1)));
    }
    result.flags |= flags;
    return result;
  }
};

}  // namespace kintsugi::core::cuda
