// Draws cases for a device: the host's generator, with shapes around the tiles of device kernels and the
// options that only calls on a device have.
#pragma once

#include "tests/support/fuzz_case.hpp"

namespace kintsugi::test {

struct DrawLimits {
  bool on_host = false;    // the host's engines and memory, to test generator and judge
  bool small = false;      // for tools that take a thousand times as long
  bool no_vendor = false;  // only what our own kernels compute
};

// Schemes are those of the library that is loaded.
FuzzChoices device_choices(const DrawLimits& limits);

// Case number `number` of a seed.
FuzzCase draw_device_case(const FuzzChoices& choices, const DrawLimits& limits, std::uint64_t seed,
                          std::uint64_t number);

}  // namespace kintsugi::test
