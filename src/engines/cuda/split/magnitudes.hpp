// Largest and smallest magnitude of a vector, as bits. The vector's range follows from the two. That costs a
// fraction of updating a range with every element.
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

  Bits largest = 0;  // largest finite magnitude
  // Smallest non-zero magnitude, less one. So a zero becomes the largest number and needs no test.
  Bits smallest_minus_1 = ~Bits{0};
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
    smallest_minus_1 = lesser(smallest_minus_1, magnitude - 1);
  }

  // Adds the elements. Returns true if all are finite.
  template <int count>
  KINTSUGI_HOST_DEVICE constexpr bool add(const T (&x)[count]) {
    Bits new_largest = largest;
    Bits new_smallest_minus_1 = smallest_minus_1;
    for (int i = 0; i < count; ++i) {
      const Bits magnitude = std::bit_cast<Bits>(x[i]) & without_sign;
      new_largest = greater(new_largest, magnitude);
      new_smallest_minus_1 = lesser(new_smallest_minus_1, magnitude - 1);
    }
    if (new_largest < infinity) {
      largest = new_largest;
      smallest_minus_1 = new_smallest_minus_1;
      return true;
    }
    for (int i = 0; i < count; ++i) add(x[i]);
    return false;
  }

  // Adds x[i], an element of the i-th of several adjacent vectors, to magnitudes[i]. Returns true if all are
  // finite.
  template <int count>
  KINTSUGI_HOST_DEVICE static constexpr bool add_each(Magnitudes (&magnitudes)[count], const T (&x)[count]) {
    Bits bits[count] = {};
    Bits largest_of_all = 0;
    for (int i = 0; i < count; ++i) {
      bits[i] = std::bit_cast<Bits>(x[i]) & without_sign;
      largest_of_all = greater(largest_of_all, bits[i]);
    }
    if (largest_of_all >= infinity) {
      for (int i = 0; i < count; ++i) magnitudes[i].add(x[i]);
      return false;
    }
    for (int i = 0; i < count; ++i) {
      magnitudes[i].largest = greater(magnitudes[i].largest, bits[i]);
      magnitudes[i].smallest_minus_1 = lesser(magnitudes[i].smallest_minus_1, bits[i] - 1);
    }
    return true;
  }

  KINTSUGI_HOST_DEVICE constexpr void add(const Magnitudes& other) {
    largest = greater(largest, other.largest);
    smallest_minus_1 = lesser(smallest_minus_1, other.smallest_minus_1);
    flags |= other.flags;
  }

  // Range of the vector. All its exponents, raised ones (VectorRange::raised) as well, grow with the
  // magnitude. So the largest and the smallest element suffice.
  KINTSUGI_HOST_DEVICE constexpr VectorRange range() const {
    VectorRange result;
    if (largest != 0) {
      extend(result, std::bit_cast<T>(largest));
      extend(result, std::bit_cast<T>(static_cast<Bits>(smallest_minus_1 + 1)));
    }
    result.flags |= flags;
    return result;
  }
};

}  // namespace kintsugi::core::cuda
