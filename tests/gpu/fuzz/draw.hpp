// Draws cases for a device: the host's generator, with shapes around the tiles of device kernels and the
// options that only calls on a device have.
#pragma once

#include "tests/support/fuzz_case.hpp"

namespace kintsugi::test {

struct DrawLimits {
  bool on_host = false;    // uses the host's engines and memory, to test generator and judge
  bool small = false;      // only small shapes, for tools that slow calls down a thousand times
  bool no_vendor = false;  // only products of Kintsugi's own kernels
};

// Choices from which cases are drawn; the schemes are those of the loaded library.
FuzzChoices device_choices(const DrawLimits& limits);

// Case number `number` of a seed.
FuzzCase draw_device_case(const FuzzChoices& choices, const DrawLimits& limits, std::uint64_t seed,
                          std::uint64_t number);

}  // namespace kintsugi::test
